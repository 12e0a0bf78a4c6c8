// Random histories of a store on a faulty disk, checked against a model of the samples that must be
// present.
#include <cstring>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "common/domain/node_directory.h"
#include "common/domain/residency_table.h"
#include "common/domain/segment_format.h"
#include "common/log/log.h"
#include "sidecar/store/node_store.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using test::FaultDevice;
using Operation = FaultDevice::Operation;

constexpr std::uint64_t kSamples = 80;
constexpr int kWorlds = 40;
constexpr int kSteps = 400;

class World {
public:
    explicit World(std::uint64_t seed)
        : luck_(seed),
          device_(seed),
          dataset_(test::Dataset::random(kSamples, 3000, seed)) {
        device_.set_hook([this](Operation operation, const std::string& path) {
            note_creation(operation, path);
            note_unlink(operation, path);
        });
        open();
    }

    void step() {
        if (device_.is_killed()) {
            rise();
            return;
        }
        const std::uint64_t dice = luck_.below(1000);
        const SampleId sample{luck_.below(kSamples)};
        if (dice < 500) {
            append(sample);
        } else if (dice < 750) {
            store_->drop(sample);
            model_.erase(sample.value());
        } else if (dice < 800) {
            EXPECT_EQ(store_->verify(sample), model_.contains(sample.value()));
        } else if (dice < 840) {
            store_->will_need(sample);
            store_->wont_need(sample);
        } else if (dice < 880) {
            const auto done = store_->compact(Bytes{luck_.below(20'000)});
            EXPECT_TRUE(done.has_value() || faulty_);
        } else if (dice < 890) {
            rot(sample);
        } else if (dice < 930) {
            inject_fault();
        } else if (dice < 950) {
            heal();
        } else {
            end_of_life();
        }
    }

    void check() {
        StoreUsage want;
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            const auto known = model_.find(id);
            const auto where = store_->find(SampleId{id});
            ASSERT_EQ(where.has_value(), known != model_.end()) << "sample " << id;
            if (where.has_value()) {
                ASSERT_EQ(where->segment_class, known->second);
                expect_right_bytes(id, *where);
                const Bytes record{
                    domain::record_bytes(dataset_.manifest().size_bytes(SampleId{id}))};
                const bool resident = known->second == SegmentClass::kResident;
                (resident ? want.resident_bytes : want.window_bytes) += record;
                ++(resident ? want.resident_samples : want.window_samples);
            }
        }
        const StoreUsage usage = store_->usage();
        EXPECT_EQ(usage.resident_bytes, want.resident_bytes);
        EXPECT_EQ(usage.window_bytes, want.window_bytes);
        EXPECT_EQ(usage.resident_samples, want.resident_samples);
        EXPECT_EQ(usage.window_samples, want.window_samples);
        if (!was_faulty_) {
            EXPECT_EQ(usage.file_bytes, segment_bytes_on_disk());
        }
        EXPECT_FALSE(dangling_) << "unlinking although " << *dangling_;
        EXPECT_FALSE(reused_) << "a segment number was used twice: " << *reused_;
    }

    // Final check: an orderly stop keeps everything, even over a power cut.
    void finish() {
        heal();
        if (device_.is_killed()) {
            rise();
        }
        ASSERT_TRUE(store_->compact(Bytes::unlimited()).has_value());
        ASSERT_TRUE(store_->close().has_value());
        EXPECT_EQ(
            store_->append(SampleId{0}, dataset_.payload(SampleId{0}), SegmentClass::kResident)
                .has_value(),
            model_.contains(0));
        store_.reset();
        device_.power_cut();
        ++boot_;
        auto before = model_;
        open();
        EXPECT_TRUE(store_->recovery().after_clean_stop);
        for (const auto& [id, segment_class] : before) {
            EXPECT_TRUE(store_->find(SampleId{id}).has_value()) << "sample " << id;
        }
        believe_store();
        check();
    }

private:
    void open() {
        StoreOptions options;
        options.directory = options.control_directory = "/node";
        options.segment_bytes = kib(16);
        options.window_segment_bytes = kib(5);
        options.reserved_free = 0;
        options.boot_id = fmt::format("boot-{}", boot_);
        auto opened = NodeStore::open(device_, dataset_.manifest(), options);
        ASSERT_TRUE(opened.has_value()) << opened.error().message;
        store_ = *std::move(opened);
        was_faulty_ = false;
    }

    void append(SampleId sample) {
        const auto as = luck_.below(2) == 0 ? SegmentClass::kResident : SegmentClass::kWindow;
        const auto stored = store_->append(sample, dataset_.payload(sample), as);
        if (!stored.has_value()) {
            EXPECT_TRUE(faulty_) << stored.error().message;
            EXPECT_FALSE(model_.contains(sample.value()));
            return;
        }
        model_.emplace(sample.value(), as);
        EXPECT_EQ(store_->find(sample), *stored);
    }

    // Flips a bit on the disk. Once the damage is detected, the sample never returns.
    void rot(SampleId sample) {
        const auto where = store_->find(sample);
        const std::uint64_t size = dataset_.manifest().size_bytes(sample);
        if (!where.has_value() || size == 0 || faulty_) {
            return;
        }
        device_.flip_bit(
            "/node/" + domain::segment_file(where->segment),
            where->record_offset + domain::kRecordHeaderBytes + luck_.below(size),
            static_cast<unsigned>(luck_.below(8)));
        EXPECT_FALSE(store_->verify(sample));
        model_.erase(sample.value());
    }

    void inject_fault() {
        faulty_ = true;
        was_faulty_ = true;
        switch (luck_.below(5)) {
            case 0:
                device_.set_capacity(Bytes{total_on_disk() + luck_.below(10'000)});
                break;
            case 1:
                device_.set_read_only(true);
                break;
            case 2:
                device_.set_broken(Operation::kWrite, true);
                break;
            case 3:
                device_.set_broken(Operation::kSync, true);
                break;
            default:
                device_.kill_after(luck_.below(20));
        }
    }

    void heal() {
        device_.set_capacity(gib(1));
        device_.set_read_only(false);
        device_.set_broken(Operation::kWrite, false);
        device_.set_broken(Operation::kSync, false);
        if (!device_.is_killed()) {
            device_.revive();  // cancels a kill that has not happened yet
        }
        faulty_ = device_.is_killed();
    }

    void end_of_life() {
        heal();
        switch (luck_.below(4)) {
            case 0:
                rise();
                break;
            case 1:
                reboot();
                break;
            case 2:
                lose_file(domain::state_file(dataset_.manifest().revision()));
                break;
            default:
                lose_file(domain::residency_file(dataset_.manifest().revision()));
        }
    }

    // The process dies and another one takes over: exactly the published samples are present.
    void rise() {
        if (luck_.below(3) == 0 && !device_.is_killed()) {
            static_cast<void>(store_->close());
        }
        store_.reset();
        device_.revive();
        heal();
        open();
        EXPECT_FALSE(store_->recovery().verified_checksums);
        check();
    }

    // Unsynced samples may be lost, dropped ones may return; their bytes are right.
    void reboot() {
        store_.reset();
        device_.power_cut();
        heal();
        ++boot_;
        open();
        believe_store();
    }

    void lose_file(const std::string& name) {
        store_.reset();
        device_.revive();
        heal();
        static_cast<void>(device_.unlink("/node/" + name));
        const auto before = model_;
        open();
        EXPECT_TRUE(store_->recovery().verified_checksums);
        for (const auto& [id, segment_class] : before) {
            EXPECT_TRUE(store_->find(SampleId{id}).has_value()) << "sample " << id;
        }
        believe_store();
    }

    void believe_store() {
        model_.clear();
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            if (const auto where = store_->find(SampleId{id})) {
                model_.emplace(id, where->segment_class);
            }
        }
    }

    void expect_right_bytes(std::uint64_t id, const domain::Residency& where) {
        const auto file = device_.content("/node/" + domain::segment_file(where.segment));
        ASSERT_TRUE(file.has_value()) << "sample " << id << " points to a missing file";
        const auto want = dataset_.payload(SampleId{id});
        ASSERT_LE(where.record_offset + domain::kRecordHeaderBytes + want.size(), file->size());
        const auto record = std::span{*file}.subspan(where.record_offset);
        const auto header = domain::decode_record_header(record, where.segment);
        ASSERT_TRUE(header.has_value() && header->sample == SampleId{id}) << "sample " << id;
        ASSERT_TRUE(
            std::ranges::equal(record.subspan(domain::kRecordHeaderBytes, want.size()), want))
            << "sample " << id << " has wrong bytes in " << domain::segment_file(where.segment);
    }

    Bytes segment_bytes_on_disk() { return Bytes{total_on_disk("/node/segments/")}; }

    std::uint64_t total_on_disk(std::string_view prefix = "/node/") {
        std::uint64_t bytes = 0;
        for (const std::string& path : device_.paths()) {
            if (path.starts_with(prefix)) {
                bytes += device_.content(path)->size();
            }
        }
        return bytes;
    }

    // No entry of the residency table may point to a segment that is about to be unlinked.
    void note_unlink(Operation operation, const std::string& path) {
        if (operation != Operation::kUnlink || !path.ends_with(".seg")) {
            return;
        }
        const auto table =
            device_.content("/node/" + domain::residency_file(dataset_.manifest().revision()));
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            std::uint64_t word = 0;
            std::memcpy(
                &word,
                table->data() + domain::kResidencyHeaderBytes + id * sizeof word,
                sizeof word);
            const auto where = domain::unpack_residency(word);
            if (where.has_value() && path == "/node/" + domain::segment_file(where->segment)) {
                dangling_ = fmt::format("sample {} points to {}", id, path);
            }
        }
    }

    void note_creation(Operation operation, const std::string& path) {
        if (operation == Operation::kCreate && path.ends_with(".seg") &&
            !created_.insert(path).second) {
            reused_ = path;
        }
    }

    Prng luck_;
    FaultDevice device_;
    test::Dataset dataset_;
    std::unique_ptr<NodeStore> store_;
    std::map<std::uint64_t, SegmentClass> model_;
    std::set<std::string> created_;
    std::optional<std::string> reused_;
    std::optional<std::string> dangling_;
    int boot_ = 1;
    bool faulty_ = false;      // errors are expected now
    bool was_faulty_ = false;  // at some time since the store was opened
};

TEST(StoreProperty, ServesTheSamplesOfTheModelInRandomHistories) {
    log::set_level(log::Level::kError);
    const std::uint64_t seed = test::seed();
    for (int i = 0; i < kWorlds && !::testing::Test::HasFailure(); ++i) {
        SCOPED_TRACE(fmt::format("world {} of seed {}", i, seed));
        World world{Prng{seed + static_cast<std::uint64_t>(i) * 0x9E37}()};
        for (int step = 0; step < kSteps && !::testing::Test::HasFailure(); ++step) {
            SCOPED_TRACE(fmt::format("step {}", step));
            world.step();
            if (step % 8 == 0 && !::testing::Test::HasFailure()) {
                world.check();
            }
        }
        if (!::testing::Test::HasFailure()) {
            world.finish();
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
