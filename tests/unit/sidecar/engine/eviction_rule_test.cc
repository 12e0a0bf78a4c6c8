// SharedImportance::new_eviction(): which eviction policy serves the jobs of a node, and how it is
// set.
#include <array>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sidecar/engine/contracts.h"
#include "tests/unit/sidecar/core/sampling/node_contents.h"
#include "tests/unit/sidecar/engine/begin_of.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint32_t kCount = 400;

using test::begin_of;

// One policy for all jobs of the node, whichever of them begins first.
TEST(EvictionRule, ChoosesOnePolicyForEveryPairOfJobs) {
    struct Kind {
        const char* contract;
        std::vector<local::Parameter> parameters;
    };

    const std::array kinds = {
        Kind{"windowed", {}},
        Kind{"importance", {}},
        Kind{"importance", {{"family", 1}}},
        Kind{"replicate", {}}};
    for (const Kind& first : kinds) {
        for (const Kind& second : kinds) {
            Contracts contracts{kCount, 100};
            SamplerService service{test::kEmptyNode, kCount, contracts};
            std::unique_ptr<EvictionPolicy> eviction;
            for (const std::uint64_t job : {0U, 1U}) {
                const Kind& kind = job == 0 ? first : second;
                auto begin = begin_of(kind.contract, fmt::format("job-{}", job));
                begin.parameters = kind.parameters;
                ASSERT_TRUE(service.begin(StreamId{job}, begin, {}).has_value());
                if (auto fresh = contracts.importance().new_eviction()) {
                    eviction = std::move(fresh);
                }
            }
            const bool measured = &first != kinds.data() || &second != kinds.data();
            EXPECT_EQ(dynamic_cast<ImportanceEviction*>(eviction.get()) != nullptr, measured)
                << first.contract << " " << second.contract;
        }
    }
}

TEST(EvictionRule, ReplicateEvictionRequiresThatNobodyElseReads) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    const auto renew = [&](bool others_read) {
        contracts.importance().set_others_read(others_read);
        return contracts.importance().new_eviction();
    };
    ASSERT_TRUE(service.begin(StreamId{1}, begin_of("replicate", "j"), {}).has_value());
    auto eviction = renew(true);
    EXPECT_NE(dynamic_cast<ImportanceEviction*>(eviction.get()), nullptr);
    eviction = renew(false);
    EXPECT_NE(dynamic_cast<ReplicateEviction*>(eviction.get()), nullptr);
    ASSERT_TRUE(service.begin(StreamId{2}, begin_of("windowed", "k"), {}).has_value());
    eviction = renew(false);
    EXPECT_NE(dynamic_cast<ImportanceEviction*>(eviction.get()), nullptr);
    service.leave(StreamId{2});
    eviction = renew(false);
    EXPECT_NE(dynamic_cast<ReplicateEviction*>(eviction.get()), nullptr);
}

TEST(EvictionRule, GuestsDoNotChangeTheOwnPartysPolicy) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    ASSERT_TRUE(service.begin(StreamId{1}, begin_of("replicate", "j"), {}).has_value());
    auto eviction = contracts.importance().new_eviction();
    ASSERT_NE(dynamic_cast<ReplicateEviction*>(eviction.get()), nullptr);
    for (const char* contract : {"windowed", "importance", "replicate"}) {
        const std::string job = fmt::format("guest:{}/uid/x", contract);
        const StreamId stream{job.size()};
        ASSERT_TRUE(service.begin(stream, begin_of(contract, job), {}, 0, Party{1}).has_value());
        EXPECT_EQ(contracts.importance().new_eviction(), nullptr) << contract;
    }
}

TEST(EvictionRule, JobWithoutSubstitutesReservesNoBytes) {
    Contracts contracts{kCount, 100};
    SamplerService service{test::kEmptyNode, kCount, contracts};
    const auto begin = [&](StreamId stream, const std::string& job, double substitute) {
        auto frame = begin_of("importance", job);
        frame.parameters = {{"substitute", substitute}, {"lShare", .4}};
        return service.begin(stream, frame, {}).has_value();
    };
    ASSERT_TRUE(begin(StreamId{1}, "j", 0));
    const auto eviction = contracts.importance().new_eviction();
    const auto* policy = dynamic_cast<const ImportanceEviction*>(eviction.get());
    ASSERT_NE(policy, nullptr);
    EXPECT_EQ(policy->l_share(), 0);
    ASSERT_TRUE(begin(StreamId{2}, "k", 1));
    EXPECT_DOUBLE_EQ(policy->l_share(), .4) << "of those that take substitutes";
}

}  // namespace
}  // namespace stoker::sidecar
