// Damaged files of a node directory: no crash, no endless loop, no wrong byte passes a checksum.
// STOKER_FUZZ_ROUNDS sets the length, STOKER_TEST_SEED repeats a run.
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/domain/node_directory.h"
#include "common/domain/segment_format.h"
#include "common/log/log.h"
#include "sidecar/store/manifest_file.h"
#include "sidecar/store/node_store.h"
#include "sidecar/store/segment_scan.h"
#include "sidecar/store/store_state.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"
#include "tests/support/mutate.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using test::Dataset;
using test::FaultDevice;

constexpr std::uint64_t kSamples = 30;

std::uint64_t rounds() {
    const char* given = std::getenv("STOKER_FUZZ_ROUNDS");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : 3000;
}

class NodeDirectoryFuzz : public ::testing::Test {
protected:
    using Files = std::vector<std::pair<std::string, std::vector<std::byte>>>;

    NodeDirectoryFuzz()
        : seed_(test::seed()),
          luck_(seed_) {
        log::set_level(log::Level::kError);
    }

    static StoreOptions options(const std::string& boot_id) {
        StoreOptions out;
        out.directory = out.control_directory = "/node";
        out.segment_bytes = kib(8);
        out.window_segment_bytes = kib(4);
        out.reserved_free = 0;
        out.boot_id = boot_id;
        return out;
    }

    // A directory with sealed, open, compacted and partly dead segments, both resident and window.
    Files make_directory() {
        FaultDevice device{1};
        EXPECT_TRUE(store_manifest(device, "/node", dataset_.manifest_writer()).has_value());
        const auto store = NodeStore::open(device, dataset_.manifest(), options("boot-1")).value();
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            const auto as = id % 3 == 0 ? SegmentClass::kWindow : SegmentClass::kResident;
            EXPECT_TRUE(
                store->append(SampleId{id}, dataset_.payload(SampleId{id}), as).has_value());
        }
        for (std::uint64_t id = 0; id < kSamples / 2; id += 2) {
            store->drop(SampleId{id});
        }
        EXPECT_TRUE(store->compact(Bytes::unlimited()).has_value());
        Files files;
        for (const std::string& path : device.paths()) {
            files.emplace_back(path, *device.content(path));
        }
        return files;
    }

    void expect_nothing_wrong(NodeStore& store, FaultDevice& device) {
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            if (!store.verify(SampleId{id})) {
                ASSERT_FALSE(store.find(SampleId{id}).has_value());
                continue;
            }
            const auto where = store.find(SampleId{id});
            const auto file = device.content("/node/" + domain::segment_file(where->segment));
            const auto want = dataset_.payload(SampleId{id});
            ASSERT_TRUE(std::ranges::equal(
                std::span{*file}.subspan(
                    where->record_offset + domain::kRecordHeaderBytes, want.size()),
                want))
                << "sample " << id;
        }
    }

    const std::uint64_t seed_;
    Prng luck_;
    Dataset dataset_ = Dataset::random(kSamples, 1500, 3);
};

TEST_F(NodeDirectoryFuzz, OpensAfterAnyDamageAndServesNoWrongByte) {
    const Files good = make_directory();
    for (std::uint64_t round = 0; round < rounds() && !HasFailure(); ++round) {
        SCOPED_TRACE(fmt::format("round {}", round));
        FaultDevice device{round};
        const std::uint64_t victim = luck_.below(good.size());
        for (std::uint64_t i = 0; i < good.size(); ++i) {
            auto content = good[i].second;
            if (i == victim || luck_.below(8) == 0) {
                test::mutate(content, luck_);
            }
            device.put(good[i].first, content);
        }
        const char* boot_id = luck_.below(2) == 0 ? "boot-1" : "boot-2";
        const auto opened = NodeStore::open(device, dataset_.manifest(), options(boot_id));
        ASSERT_TRUE(opened.has_value()) << opened.error().message;
        expect_nothing_wrong(**opened, device);
        ASSERT_TRUE((*opened)->compact(Bytes::unlimited()).value());
        expect_nothing_wrong(**opened, device);
        const auto payload = dataset_.payload(SampleId{0});
        ASSERT_TRUE((*opened)->append(SampleId{0}, payload, SegmentClass::kResident).has_value());
        ASSERT_TRUE((*opened)->close().has_value());
    }
}

TEST_F(NodeDirectoryFuzz, ChecksumScanFindsOnlyRightBytes) {
    std::vector<std::vector<std::byte>> segments;
    for (auto& [path, content] : make_directory()) {
        if (path.ends_with(".seg")) {
            segments.push_back(content);
        }
    }
    for (std::uint64_t round = 0; round < rounds() * 5 && !HasFailure(); ++round) {
        auto bytes = segments.at(luck_.below(segments.size()));
        const auto header = domain::decode_segment_header(bytes).value();
        test::mutate(bytes, luck_);
        FaultDevice device{round};
        device.put("/s", bytes);
        const auto file = device.open("/s").value();
        for (const Trust trust : {Trust::kFooter, Trust::kChecksums}) {
            const auto found = scan_segment(*file, header.seq, dataset_.manifest(), trust).value();
            for (const domain::FooterEntry& record : found.records) {
                const auto read = read_record(*file, header.seq, record);
                ASSERT_TRUE(read.has_value() || trust == Trust::kFooter) << "round " << round;
                ASSERT_TRUE(
                    !read.has_value() ||
                    std::ranges::equal(read->payload(), dataset_.payload(record.sample)));
            }
        }
    }
}

TEST_F(NodeDirectoryFuzz, DamagedManifestIsRejected) {
    const auto& good = dataset_.manifest_bytes();
    for (std::uint64_t round = 0; round < rounds() * 5 && !HasFailure(); ++round) {
        auto bytes = good;
        test::mutate(bytes, luck_);
        if (const auto checked = domain::ManifestView::open(bytes); checked.has_value()) {
            ASSERT_EQ(bytes, good) << "round " << round;
        }
        // Without the checksum any content is acceptable, but it must come from within the buffer.
        const auto unchecked = domain::ManifestView::open(bytes, false);
        const std::uint64_t count = unchecked.has_value() ? unchecked->sample_count() : 0;
        std::uint64_t sum = 0;
        for (std::uint64_t id = 0; id < std::min(count, kSamples); ++id) {
            const auto sample = unchecked->sample(SampleId{id});
            sum += sample.key.size() + sample.etag.size();
        }
        ASSERT_LE(sum, 2 * bytes.size() * kSamples);
    }
}

TEST_F(NodeDirectoryFuzz, DamagedStateIsRejected) {
    StoreState state;
    state.boot_id = "boot-1";
    state.synced = {1, 22, 333, 4444};
    const std::string text = encode_state(state);
    for (std::uint64_t round = 0; round < rounds() * 5 && !HasFailure(); ++round) {
        const auto raw = std::as_bytes(std::span{text});
        std::vector<std::byte> bytes{raw.begin(), raw.end()};
        test::mutate(bytes, luck_);
        const std::string damaged{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        const auto decoded = decode_state(damaged);
        ASSERT_TRUE(!decoded.has_value() || damaged == text) << damaged;
    }
}

}  // namespace
}  // namespace stoker::sidecar
