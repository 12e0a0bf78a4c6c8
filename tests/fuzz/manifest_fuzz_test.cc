// Manifests of random listings, and manifests with false fields under a right checksum, as a faulty
// peer would send them (node_directory_fuzz_test.cc covers wrong checksums). The reader stays inside
// the buffer, and accepts only fields that agree with the lengths. STOKER_FUZZ_ROUNDS sets the
// length, STOKER_TEST_SEED repeats a run.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "common/base/prng.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "tests/support/mutate.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

std::uint64_t rounds() {
    const char* given = std::getenv("STOKER_FUZZ_ROUNDS");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : 3000;
}

class ManifestFuzz : public ::testing::Test {
protected:
    ManifestFuzz()
        : luck_(test::seed()) {}

    // 1 to 20 objects in up to four levels of folders; names of any bytes but NUL and '/'.
    std::vector<ListedObject> any_listing() {
        std::vector<ListedObject> objects;
        std::set<std::string> taken;
        for (std::uint64_t left = 1 + luck_.below(20); left > 0; --left) {
            std::string key = any_name();
            for (std::uint64_t depth = luck_.below(4); depth > 0; --depth) {
                key.insert(0, (luck_.below(3) == 0 ? any_name() : "folder") + "/");
            }
            if (taken.insert(key).second) {
                objects.push_back({key, any_size(), any_name()});
            }
        }
        return objects;
    }

    std::string any_name() {
        std::string name;
        for (std::uint64_t left = 1 + luck_.below(12); left > 0; --left) {
            const auto byte = static_cast<char>(1 + luck_.below(255));
            name += byte == '/' ? '_' : byte;
        }
        return name;
    }

    std::uint64_t any_size() { return luck_.below(8) == 0 ? luck_() >> 20 : luck_.below(5000); }

    // Overwrites a field of header, records or labels with a number near a limit.
    void lie(std::vector<std::byte>& bytes) {
        const std::uint64_t width = luck_.below(2) == 0 ? 4 : 8;
        const std::uint64_t at = luck_.below(bytes.size() / 4 - 2) * 4;
        const std::uint64_t near[] = {0, bytes.size(), 1ULL << 31, 1ULL << 32, 1ULL << 63, 0};
        const std::uint64_t number = near[luck_.below(std::size(near))] + luck_.below(5) - 2;
        std::memcpy(bytes.data() + at, &number, width);
    }

    static void sign(std::vector<std::byte>& bytes) {
        const std::span all{bytes};
        const std::uint32_t sum = crc32c(all.first(bytes.size() - sizeof(std::uint32_t)));
        std::memcpy(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum));
    }

    static bool is_inside(std::string_view text, const std::vector<std::byte>& bytes) {
        const auto* const begin = reinterpret_cast<const char*>(bytes.data());
        return text.empty() ||
               (text.data() >= begin && text.data() + text.size() <= begin + bytes.size());
    }

    // Calls every method of a view.
    static void expect_inside(const ManifestView& view, const std::vector<std::byte>& bytes) {
        ASSERT_LE(view.sample_count() * kManifestRecordBytes, bytes.size());
        for (std::uint64_t id = 0; id < view.sample_count(); ++id) {
            const SampleInfo sample = view.sample(SampleId{id});
            ASSERT_TRUE(is_inside(sample.key, bytes) && is_inside(sample.etag, bytes));
            ASSERT_EQ(sample.size_bytes, view.size_bytes(SampleId{id}));
        }
        for (std::uint32_t label = 0; label < view.label_count(); ++label) {
            ASSERT_TRUE(is_inside(view.label_name(label), bytes));
        }
    }

    Prng luck_;
};

TEST_F(ManifestFuzz, EveryListingRoundTrips) {
    for (std::uint64_t round = 0; round < rounds() && !HasFailure(); ++round) {
        SCOPED_TRACE(fmt::format("round {}", round));
        std::vector<ListedObject> listing = any_listing();
        const auto bytes = encode_manifest(listing).value();
        std::ranges::sort(listing, {}, &ListedObject::key);
        const auto view = ManifestView::open(bytes).value();
        ASSERT_EQ(view.sample_count(), listing.size());
        for (std::uint64_t id = 0; id < listing.size(); ++id) {
            const SampleInfo sample = view.sample(SampleId{id});
            const ListedObject back{
                std::string{sample.key}, sample.size_bytes, std::string{sample.etag}};
            ASSERT_EQ(back, listing[id]);
            const bool has_folder = sample.key.find('/') != std::string_view::npos;
            ASSERT_EQ(sample.label != kNoLabel, has_folder);
            if (has_folder) {
                const auto name = view.label_name(static_cast<std::uint32_t>(sample.label));
                const auto parent = sample.key.substr(0, sample.key.rfind('/'));
                ASSERT_TRUE(parent == name || parent.ends_with("/" + std::string{name}));
            }
        }
    }
}

TEST_F(ManifestFuzz, FalseFieldsAreReadInsideTheBuffer) {
    std::uint64_t believed = 0;
    for (std::uint64_t round = 0; round < rounds() * 5 && !HasFailure(); ++round) {
        SCOPED_TRACE(fmt::format("round {}", round));
        auto bytes = encode_manifest(any_listing()).value();
        for (std::uint64_t left = 1 + luck_.below(3); left > 0; --left) {
            lie(bytes);
        }
        if (luck_.below(4) == 0) {
            test::mutate(bytes, luck_);
        }
        if (bytes.size() > sizeof(std::uint32_t)) {
            sign(bytes);
        }
        if (const auto view = ManifestView::open(bytes); view.has_value()) {
            ++believed;
            expect_inside(*view, bytes);
        }
    }
    EXPECT_GT(believed, rounds() / 10)
        << "most false fields cannot be detected from the rest of the manifest";
}

}  // namespace
}  // namespace stoker::domain
