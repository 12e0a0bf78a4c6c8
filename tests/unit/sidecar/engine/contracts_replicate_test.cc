// The eviction policy of a node with replicating jobs, and what it learns about these jobs.
#include <algorithm>

#include <gtest/gtest.h>

#include "sidecar/core/eviction/importance_eviction.h"
#include "sidecar/core/eviction/replicate_eviction.h"
#include "sidecar/engine/contracts.h"
#include "sidecar/engine/sampler_service.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/engine/begin_of.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 400;

using test::begin_of;

struct AnyMayGo final {
    [[nodiscard]] bool operator()(SampleIndex /*sample*/) const { return true; }
};

// One epoch of a replicating job; sample i has loss i.
void replicate_epoch(
    SamplerService& service, StreamId stream, const std::string& job, std::uint64_t epoch) {
    ASSERT_TRUE(service.begin(stream, begin_of("replicate", job, epoch), {}).has_value());
    for (bool ended = false; !ended;) {
        const auto drawn = service.draw(stream, {epoch, 50}).value();
        service.on_read(stream, std::vector<SampleIndex>{drawn.served.begin(), drawn.served.end()});
        service.on_losses(
            stream, {epoch, drawn.served, {drawn.served.begin(), drawn.served.end()}});
        ended = drawn.ended;
    }
}

TEST(ReplicatingJobs, LoneReplicatingJobUsesReplicateEviction) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    ASSERT_TRUE(service.begin(StreamId{1}, begin_of("replicate", "j", 0), {}).has_value());
    const auto eviction = contracts.importance().new_eviction();
    ASSERT_NE(dynamic_cast<ReplicateEviction*>(eviction.get()), nullptr);
    replicate_epoch(service, StreamId{1}, "j", 0);
    EXPECT_EQ(contracts.importance().new_eviction(), nullptr) << "one is enough";
    eviction->on_resident(0, Bytes{100});
    std::vector<SampleIndex> victims;
    EXPECT_TRUE(eviction->make_room(kCount - 1, Bytes{100}, AnyMayGo{}, victims));
    EXPECT_EQ(victims, std::vector<SampleIndex>{0}) << "its ghost scores more than the resident";
    eviction->on_gone(0);
    eviction->on_resident(kCount - 1, Bytes{100});
    EXPECT_FALSE(eviction->make_room(0, Bytes{100}, AnyMayGo{}, victims));
}

// The policy learns an epoch's draws when the epoch begins, and each read by a rank of the job.
TEST(ReplicatingJobs, ReplicateEvictionKeepsResidentsUntilTheirLastReadOfTheEpoch) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    const StreamId stream{1};
    ASSERT_TRUE(service.begin(stream, begin_of("replicate", "j", 0), {}).has_value());
    const auto eviction = contracts.importance().new_eviction();
    replicate_epoch(service, stream, "j", 0);
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        eviction->on_resident(sample, Bytes{100});
    }
    ASSERT_TRUE(service.begin(stream, begin_of("replicate", "j", 1), {}).has_value());
    const auto served = service.draw(stream, {1, kCount}).value().served;
    const auto times = [&served](std::uint64_t sample) {
        return static_cast<std::uint64_t>(std::ranges::count(served, sample));
    };
    std::vector<SampleIndex> not_drawn;
    SampleIndex copied = 0;
    for (SampleIndex sample = 0; sample < kCount; ++sample) {
        copied = times(sample) > 1 ? sample : copied;
        if (times(sample) == 0) {
            not_drawn.push_back(sample);
        }
    }
    const auto first_to_go = [&eviction](std::size_t count) {
        std::vector<SampleIndex> victims;
        eviction->shrink(Bytes{100 * count}, victims);
        std::ranges::sort(victims);
        return victims;
    };
    EXPECT_EQ(first_to_go(not_drawn.size()), not_drawn);
    for (std::uint64_t left = times(copied); left > 0; --left) {
        EXPECT_EQ(first_to_go(not_drawn.size()), not_drawn) << left;
        service.on_read(StreamId{2}, std::vector{copied});  // another job reads it
        service.on_read(stream, std::vector{copied});
        eviction->on_read(copied, true);
    }
    not_drawn.push_back(copied);
    std::ranges::sort(not_drawn);
    EXPECT_EQ(first_to_go(not_drawn.size()), not_drawn);
}

TEST(ReplicatingJobs, BesideAnImportanceJobTheNodeUsesImportanceEviction) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    replicate_epoch(service, StreamId{1}, "j", 0);
    auto eviction = contracts.importance().new_eviction();
    ASSERT_TRUE(service.begin(StreamId{2}, begin_of("importance", "k", 0), {}).has_value());
    eviction = contracts.importance().new_eviction();
    EXPECT_NE(dynamic_cast<ImportanceEviction*>(eviction.get()), nullptr);
    service.leave(StreamId{2});
    replicate_epoch(service, StreamId{1}, "j", 1);
    eviction = contracts.importance().new_eviction();
    ASSERT_NE(dynamic_cast<ReplicateEviction*>(eviction.get()), nullptr);
    eviction->on_resident(0, Bytes{100});
    std::vector<SampleIndex> victims;
    EXPECT_TRUE(eviction->make_room(kCount - 1, Bytes{100}, AnyMayGo{}, victims))
        << "it takes over the scores that there are";
}

}  // namespace
}  // namespace stoker::sidecar
