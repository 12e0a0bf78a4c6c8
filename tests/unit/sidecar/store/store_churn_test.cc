// Disk costs of eviction: dropped samples must free their bytes, and the cleaner, which rewrites
// half-empty segments, must not write more than it frees. A real store, file system and policy.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/node_directory.h"
#include "common/domain/segment_format.h"
#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/never_evict.h"
#include "sidecar/device/posix_device.h"
#include "sidecar/store/node_store.h"
#include "tests/support/dataset.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using test::Dataset;

constexpr Bytes kSegment = kib(64);

struct Anyone final {
    bool operator()(SampleIndex /*sample*/) const { return true; }
};

class StoreChurn : public ::testing::Test {
protected:
    struct Result {
        double written_per_admitted = 0;
        double file_bytes_per_live = 0;  // maximum, measured after each cleaner run
        std::uint64_t admitted = 0;
    };

    void SetUp() override {
        StoreOptions options;
        options.directory = options.control_directory = folder_.path();
        options.segment_bytes = kSegment;
        options.window_segment_bytes = kib(16);
        options.reserved_free = 0;
        options.boot_id = "boot-1";
        store_ = NodeStore::open(*device_, dataset_.manifest(), options).value();
    }

    // Performs `reads` reads of samples chosen by `next`, with room for `grant`. The cleaner may
    // copy as much as was written since its last run, as in the sidecar.
    template <class Next>
    Result churn(EvictionPolicy& policy, Bytes grant, int reads, Next next) {
        Result result;
        Bytes admitted_bytes;
        Bytes cleaned_at;
        for (int read = 0; read < reads; ++read) {
            const SampleIndex sample = next();
            const bool hit = store_->find(SampleId{sample}).has_value();
            if (!hit && admit(policy, sample, grant)) {
                ++result.admitted;
                admitted_bytes += record_bytes(sample);
            }
            policy.on_read(sample, hit);
            if (read % 100 == 99) {
                const Bytes written = store_->usage().written_bytes;
                EXPECT_TRUE(store_->compact(written - cleaned_at).has_value());
                cleaned_at = written;
                result.file_bytes_per_live = std::max(result.file_bytes_per_live, spread());
            }
        }
        result.written_per_admitted = static_cast<double>(store_->usage().written_bytes.count()) /
                                      static_cast<double>(admitted_bytes.count());
        return result;
    }

    bool admit(EvictionPolicy& policy, SampleIndex sample, Bytes grant) {
        const Bytes wanted = store_->usage().resident_bytes + record_bytes(sample);
        if (wanted > grant) {
            std::vector<SampleIndex> victims;
            if (!policy.make_room(sample, wanted - grant, Anyone{}, victims)) {
                return false;
            }
            for (const SampleIndex victim : victims) {
                policy.on_gone(victim);
                store_->drop(SampleId{victim});
            }
        }
        policy.on_resident(sample, record_bytes(sample));
        EXPECT_TRUE(store_->append(
            SampleId{sample}, dataset_.payload(SampleId{sample}), SegmentClass::kResident));
        EXPECT_LE(store_->usage().resident_bytes, grant);
        return true;
    }

    // File bytes per live byte, without the segment being filled.
    [[nodiscard]] double spread() const {
        const StoreUsage usage = store_->usage();
        return static_cast<double>((usage.file_bytes - kSegment).count()) /
               static_cast<double>(usage.resident_bytes.count());
    }

    [[nodiscard]] Bytes record_bytes(SampleIndex sample) const {
        return Bytes{domain::record_bytes(dataset_.manifest().size_bytes(SampleId{sample}))};
    }

    [[nodiscard]] std::uint64_t bytes_on_disk() const {
        std::uint64_t bytes = 0;
        for (const auto& entry :
             std::filesystem::directory_iterator{folder_.path() + "/segments"}) {
            bytes += entry.path().extension() == ".seg" ? entry.file_size() : 0;
        }
        return bytes;
    }

    test::TempFolder folder_;
    std::unique_ptr<Device> device_ = make_posix_device();
    Dataset dataset_ = Dataset::random(2000, 4000, 1);
    std::unique_ptr<NodeStore> store_;
};

TEST_F(StoreChurn, LruEvictionFreesItsBytesAtABoundedCost) {
    Prng prng{test::seed()};
    Lru policy;
    const auto result = churn(
        policy, mib(1), 20000, [&prng] { return static_cast<SampleIndex>(prng.below(2000)); });
    RecordProperty("written_per_admitted", std::to_string(result.written_per_admitted));
    EXPECT_GT(result.admitted, 10000U);
    EXPECT_LE(result.written_per_admitted, 2.0);
    EXPECT_LE(result.file_bytes_per_live, 2.0);
    // The bookkeeping matches the file system.
    EXPECT_LE(bytes_on_disk(), store_->usage().file_bytes.count());
    for (std::uint64_t id = 0; id < 2000; ++id) {
        EXPECT_TRUE(!store_->find(SampleId{id}) || store_->verify(SampleId{id}));
    }
}

TEST_F(StoreChurn, LfuEvictionFreesItsBytesAtABoundedCost) {
    Prng prng{test::seed()};
    Lfu policy;
    const auto result = churn(policy, mib(1), 40000, [&prng] {
        return static_cast<SampleIndex>(prng.below(45) * prng.below(45));
    });
    EXPECT_LE(result.written_per_admitted, 2.0);
    EXPECT_LE(result.file_bytes_per_live, 2.0);
}

TEST_F(StoreChurn, NeverEvictWritesEachByteOnce) {
    Prng prng{test::seed()};
    NeverEvict policy;
    const auto result = churn(
        policy, mib(1), 20000, [&prng] { return static_cast<SampleIndex>(prng.below(2000)); });
    EXPECT_LE(result.written_per_admitted, 1.05);  // headers and footers
}

}  // namespace
}  // namespace stoker::sidecar
