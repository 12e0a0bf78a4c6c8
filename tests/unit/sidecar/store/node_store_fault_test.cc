// The store on a failing disk, and under several threads.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "common/domain/node_directory.h"
#include "common/domain/segment_format.h"
#include "common/log/log.h"
#include "sidecar/store/node_store.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::sidecar {
namespace {

using domain::SampleId;
using domain::SegmentClass;
using test::Dataset;
using test::FaultDevice;
using Operation = FaultDevice::Operation;

constexpr std::uint64_t kSamples = 200;

class NodeStoreFaultTest : public ::testing::Test {
protected:
    NodeStoreFaultTest() { log::set_level(log::Level::kError); }

    std::unique_ptr<NodeStore> open(double reserved_free = 0) {
        StoreOptions options;
        options.directory = "/node";
        options.control_directory = "/control";
        options.segment_bytes = kib(32);
        options.window_segment_bytes = kib(8);
        options.reserved_free = reserved_free;
        options.boot_id = "boot-1";
        return NodeStore::open(device_, dataset_.manifest(), options).value();
    }

    Result<domain::Residency> append(
        NodeStore& store, std::uint64_t id, SegmentClass as = SegmentClass::kResident) {
        return store.append(SampleId{id}, dataset_.payload(SampleId{id}), as);
    }

    // Appends samples in order until an error; returns the number of stored samples.
    std::uint64_t fill(NodeStore& store) {
        std::uint64_t id = 0;
        while (id < kSamples && append(store, id).has_value()) {
            ++id;
        }
        return id;
    }

    void expect_exactly(NodeStore& store, std::uint64_t count) {
        for (std::uint64_t id = 0; id < kSamples; ++id) {
            ASSERT_EQ(store.find(SampleId{id}).has_value(), id < count) << "sample " << id;
            ASSERT_EQ(store.verify(SampleId{id}), id < count) << "sample " << id;
        }
    }

    FaultDevice device_{1};
    Dataset dataset_ = Dataset::random(kSamples, 3000, 5);
};

TEST_F(NodeStoreFaultTest, AFullDiskStopsAppendsButNotReads) {
    const auto store = open();
    device_.set_capacity(kib(100));
    const std::uint64_t stored = fill(*store);
    EXPECT_GT(stored, 20U);
    ASSERT_LT(stored, kSamples);
    EXPECT_EQ(append(*store, stored).error().code, ErrorCode::kResourceExhausted);
    expect_exactly(*store, stored);
    device_.set_capacity(gib(1));
    EXPECT_TRUE(append(*store, stored).has_value());
    expect_exactly(*store, stored + 1);
}

TEST_F(NodeStoreFaultTest, ADiskThatFillsUnderAnOpenSegmentLosesOnlyTheNewSample) {
    const auto store = open();
    ASSERT_TRUE(append(*store, 0).has_value());
    std::uint64_t used = 0;
    for (const std::string& path : device_.paths()) {
        used += device_.content(path)->size();
    }
    device_.set_capacity(Bytes{used + 40});
    EXPECT_EQ(append(*store, 1).error().code, ErrorCode::kResourceExhausted);
    expect_exactly(*store, 1);
    device_.set_capacity(gib(1));
    EXPECT_TRUE(append(*store, 1).has_value());
    expect_exactly(*store, 2);
}

TEST_F(NodeStoreFaultTest, KeepsTheReserveFree) {
    const auto store = open(0.5);
    device_.set_capacity(kib(400));
    const std::uint64_t stored = fill(*store);
    ASSERT_LT(stored, kSamples);
    const auto refused = append(*store, stored);
    EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
    EXPECT_NE(
        refused.error().message.find("200Ki of it are reserved (reservedFree)"), std::string::npos)
        << refused.error().message;
    EXPECT_GE(device_.space("/node").value().available, kib(200));
    expect_exactly(*store, stored);
}

TEST_F(NodeStoreFaultTest, CompactionMayUseTheReserveBecauseItFreesMore) {
    const auto store = open(0.5);
    device_.set_capacity(kib(400));
    const std::uint64_t stored = fill(*store);
    for (std::uint64_t id = 0; id < stored; ++id) {
        if (id % 4 != 0) {
            store->drop(SampleId{id});
        }
    }
    const Bytes before = store->usage().file_bytes;
    ASSERT_TRUE(store->compact(Bytes::unlimited()).value());
    EXPECT_LT(store->usage().file_bytes, before);
    for (std::uint64_t id = 0; id < stored; id += 4) {
        EXPECT_TRUE(store->verify(SampleId{id}));
    }
}

TEST_F(NodeStoreFaultTest, ServesAfterAReadOnlyRemount) {
    const auto store = open();
    const std::uint64_t stored = 50;
    for (std::uint64_t id = 0; id < stored; ++id) {
        ASSERT_TRUE(append(*store, id).has_value());
    }
    device_.set_read_only(true);
    EXPECT_EQ(append(*store, stored).error().code, ErrorCode::kUnavailable);
    expect_exactly(*store, stored);
    EXPECT_FALSE(store->close().has_value());
    expect_exactly(*store, stored);
}

TEST_F(NodeStoreFaultTest, DoesNotTrustASegmentWhoseSyncFailed) {
    {
        const auto store = open();
        EXPECT_EQ(fill(*store), kSamples);
        device_.set_broken(Operation::kSync, true);
        EXPECT_FALSE(store->compact(Bytes::unlimited()).has_value());
        device_.set_broken(Operation::kSync, false);
        ASSERT_TRUE(store->close().has_value());
    }
    const auto state =
        device_.content("/control/" + domain::state_file(dataset_.manifest().revision()));
    const std::string text{reinterpret_cast<const char*>(state->data()), state->size()};
    EXPECT_NE(text.find(R"("synced":[2,)"), std::string::npos) << text;
}

TEST_F(NodeStoreFaultTest, AMissingFileLosesOnlyItsSamples) {
    const auto store = open();
    ASSERT_TRUE(append(*store, 0).has_value());
    const auto where = store->find(SampleId{0});
    ASSERT_TRUE(device_.unlink("/node/" + domain::segment_file(where->segment)).has_value());
    EXPECT_FALSE(store->verify(SampleId{0}));
    EXPECT_EQ(store->find(SampleId{0}), std::nullopt);
    EXPECT_EQ(store->usage().resident_samples, 0U);
}

TEST_F(NodeStoreFaultTest, RunningOutOfDescriptorsDropsNothing) {
    const auto store = open();
    ASSERT_EQ(fill(*store), kSamples);
    device_.set_broken(Operation::kOpen, true);
    store->will_need(SampleId{0});
    store->wont_need(SampleId{0});
    device_.set_broken(Operation::kOpen, false);
    expect_exactly(*store, kSamples);
}

// Lets tests block the writes to one file until release.
class WriteGate {
public:
    void hold(std::uint64_t sample_writes) {
        const std::lock_guard lock{mutex_};
        held_ = sample_writes;
    }

    // Called by writing threads: the first `held_` of them wait.
    void pass() {
        std::unique_lock lock{mutex_};
        if (held_ == 0) {
            return;
        }
        --held_;
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_; });
    }

    void wait_until_held(std::uint64_t count) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [&] { return waiting_ == count; });
    }

    void open() {
        const std::lock_guard lock{mutex_};
        open_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t held_ = 0;
    std::uint64_t waiting_ = 0;
    bool open_ = false;
};

TEST_F(NodeStoreFaultTest, PublishesARecordOnlyAfterThoseBeforeIt) {
    const auto store = open();
    ASSERT_TRUE(append(*store, 0).has_value());
    WriteGate gate;
    gate.hold(1);
    device_.set_hook([&](Operation operation, const std::string&) {
        if (operation == Operation::kWrite) {
            gate.pass();
        }
    });
    std::jthread slow{[&] { EXPECT_TRUE(append(*store, 1).has_value()); }};
    gate.wait_until_held(1);
    std::atomic<bool> returned{false};
    std::jthread fast{[&] {
        EXPECT_TRUE(append(*store, 2).has_value());
        EXPECT_TRUE(store->find(SampleId{1}).has_value());
        returned = true;
    }};
    // The later record is in the file but not published: a scan after a crash would not find it.
    const std::uint64_t both = domain::record_bytes(dataset_.manifest().size_bytes(SampleId{1})) +
                               domain::record_bytes(dataset_.manifest().size_bytes(SampleId{2}));
    const auto segment = "/node/" + domain::segment_file(store->find(SampleId{0})->segment);
    const std::uint64_t end = store->find(SampleId{0})->record_offset +
                              domain::record_bytes(dataset_.manifest().size_bytes(SampleId{0})) +
                              both;
    while (device_.content(segment)->size() < end) {
        std::this_thread::yield();
    }
    EXPECT_EQ(store->find(SampleId{2}), std::nullopt);
    EXPECT_FALSE(returned);
    gate.open();
}

TEST_F(NodeStoreFaultTest, TwoThreadsWithOneSampleStoreItOnce) {
    const auto store = open();
    WriteGate gate;
    gate.hold(2);  // the segment's header, and the record
    device_.set_hook([&](Operation operation, const std::string& path) {
        if (operation == Operation::kWrite && path.ends_with(".seg")) {
            gate.pass();
        }
    });
    gate.open();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { EXPECT_TRUE(append(*store, 5).has_value()); });
    }
    threads.clear();
    EXPECT_EQ(store->usage().resident_samples, 1U);
    const auto size = domain::record_bytes(dataset_.manifest().size_bytes(SampleId{5}));
    EXPECT_EQ(store->usage().file_bytes, Bytes{domain::kSegmentHeaderBytes + size});
}

TEST_F(NodeStoreFaultTest, ManyThreadsKeepTheBookkeepingExact) {
    const auto store = open();
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            Prng luck{t};
            for (int i = 0; i < 2000; ++i) {
                const std::uint64_t id = luck.below(kSamples);
                const std::uint64_t dice = luck.below(10);
                if (dice < 5) {
                    const auto as = dice < 2 ? SegmentClass::kWindow : SegmentClass::kResident;
                    EXPECT_TRUE(append(*store, id, as).has_value());
                } else if (dice < 9) {
                    store->drop(SampleId{id});
                } else {
                    EXPECT_TRUE(store->compact(kib(20)).has_value());
                }
            }
        });
    }
    threads.clear();
    std::uint64_t live = 0;
    for (std::uint64_t id = 0; id < kSamples; ++id) {
        const bool there = store->find(SampleId{id}).has_value();
        EXPECT_EQ(store->verify(SampleId{id}), there);
        live += there ? 1 : 0;
    }
    EXPECT_EQ(store->usage().resident_samples + store->usage().window_samples, live);
    std::uint64_t on_disk = 0;
    for (const std::string& path : device_.paths()) {
        on_disk += path.ends_with(".seg") ? device_.content(path)->size() : 0;
    }
    EXPECT_EQ(store->usage().file_bytes, Bytes{on_disk});
}

}  // namespace
}  // namespace stoker::sidecar
