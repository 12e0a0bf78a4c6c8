#include "sidecar/service/client_memfds.h"

#include <numeric>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/sample_client.h"

namespace stoker::sidecar {
namespace {

constexpr std::uint64_t kSamples = 10;

Result<StreamPlan> read(
    const std::vector<std::uint64_t>& ids, std::uint64_t count, std::uint64_t start = 0) {
    return read_plan(test::sealed_ids(ids), {3, count, start}, kSamples);
}

std::vector<std::uint64_t> ids_of(const UniqueFd& memfd) {
    std::vector<std::uint64_t> ids(100);
    const ssize_t bytes = ::pread(memfd.get(), ids.data(), ids.size() * sizeof(ids[0]), 0);
    ids.resize(static_cast<std::size_t>(bytes) / sizeof(ids[0]));
    return ids;
}

TEST(SealedPlan, HasTheOrderOfTheEpoch) {
    const auto plan = read({4, 2, 9}, 3, 1);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    EXPECT_EQ(plan->epoch(), 3U);
    EXPECT_EQ(plan->length(), 3U);
    EXPECT_EQ(plan->horizon(), 3U);
    EXPECT_EQ(plan->frontier(), 1U);
    EXPECT_EQ(plan->sample_at(2), 9U);
}

TEST(SealedPlan, FurtherIdsAreTheBeginningOfTheNextEpoch) {
    const auto plan = read({4, 2, 9, 7, 4}, 3);
    ASSERT_TRUE(plan.has_value()) << plan.error().message;
    EXPECT_EQ(plan->length(), 3U);
    EXPECT_EQ(plan->horizon(), 5U);
    EXPECT_EQ(plan->sample_at(3), 7U);
}

TEST(SealedPlan, RefusesTooFewOrTooManyIds) {
    EXPECT_EQ(read({4, 2}, 3).error().code, ErrorCode::kInvalidArgument);
    std::vector<std::uint64_t> ids(3 + local::kAheadSamplesMax, 1);
    EXPECT_TRUE(read(ids, 3).has_value());
    ids.push_back(1);
    EXPECT_EQ(read(ids, 3).error().code, ErrorCode::kInvalidArgument);
}

TEST(SealedPlan, RefusesAPartialId) {
    UniqueFd memfd{::memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    ASSERT_EQ(::ftruncate(memfd.get(), 20), 0);
    ASSERT_EQ(::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
    EXPECT_EQ(read_plan(memfd, {3, 2, 0}, kSamples).error().code, ErrorCode::kInvalidArgument);
}

TEST(SealedPlan, RefusesUnknownIds) {
    EXPECT_EQ(read({4, 10}, 2).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(read({4, 10}, 1).error().code, ErrorCode::kInvalidArgument);
}

TEST(SealedPlan, RefusesAMemfdWithoutSeals) {
    const UniqueFd memfd{::memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    EXPECT_EQ(read_plan(memfd, {3, 0, 0}, kSamples).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(read_plan({}, {3, 0, 0}, kSamples).error().code, ErrorCode::kInvalidArgument);
}

TEST(SealedPlan, IsCutToTheEpochForALeaderThatKnowsNoLookahead) {
    const local::Plan plan{3, 2, 1};
    const UniqueFd own = without_ahead(test::sealed_ids({4, 2, 9}), plan, kSamples);
    EXPECT_THAT(ids_of(own), testing::ElementsAre(4, 2));
    EXPECT_TRUE(read_plan(own, plan, kSamples).has_value()) << "it is sealed";
    EXPECT_THAT(
        ids_of(without_ahead(test::sealed_ids({4, 2}), plan, kSamples)),
        testing::ElementsAre(4, 2));
}

TEST(SealedPlan, PassesAnInvalidPlanToTheLeader) {
    EXPECT_FALSE(without_ahead({}, {3, 2, 0}, kSamples).valid());
    EXPECT_THAT(
        ids_of(without_ahead(test::sealed_ids({4}), {3, 2, 0}, kSamples)), testing::ElementsAre(4));
}

TEST(SealedPlan, RefusesASparseMemfdByItsLength) {
    constexpr std::uint64_t kMany = std::uint64_t{1} << 27U;
    const UniqueFd memfd{::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    ASSERT_EQ(::ftruncate(memfd.get(), kMany * sizeof(std::uint64_t)), 0);
    ASSERT_EQ(::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_GROW), 0);
    EXPECT_EQ(check_plan(memfd, {3, kMany, 0}, kSamples).error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(read_plan(memfd, {3, kMany, 0}, kSamples).has_value());
    EXPECT_FALSE(check_plan(memfd, {3, 10, 0}, kSamples).has_value()) << "longer than it says";
    EXPECT_EQ(check_plan(memfd, {3, kMany, 0}, kMany).value(), kMany);
}

TEST(SealedPlan, ALargerDatasetMayHaveLongerPlans) {
    EXPECT_EQ(plan_positions_max(1), 65536U);
    EXPECT_EQ(plan_positions_max(1'000'000), 8'000'000U);
    EXPECT_EQ(plan_positions_max(UINT64_MAX), std::uint64_t{1} << 28U);
}

local::Begin begin_of(std::uint64_t served, std::uint64_t snapshot) {
    local::Begin begin;
    begin.served_bytes = served;
    begin.snapshot_bytes = snapshot;
    return begin;
}

TEST(SealedState, ReadsBackSealedState) {
    BeginState state;
    state.served = {std::byte{3}, std::byte{1}};
    state.snapshot = std::string{"a\0b", 3};
    const auto memfd = seal_begin_state(state).value();
    const auto read = read_begin_state(memfd, begin_of(2, 3), 16).value();
    EXPECT_EQ(read.served, state.served);
    EXPECT_EQ(read.snapshot, state.snapshot);
}

TEST(SealedState, ABeginWithoutStateNeedsNoMemfd) {
    const auto read = read_begin_state({}, begin_of(0, 0), 16).value();
    EXPECT_TRUE(read.served.empty());
    EXPECT_TRUE(read.snapshot.empty());
}

TEST(SealedState, RefusesUnsealedAndWrongSizedState) {
    const auto eight = test::sealed_ids({1});
    EXPECT_FALSE(read_begin_state({}, begin_of(1, 0), 16).has_value()) << "no memfd";
    EXPECT_FALSE(read_begin_state(eight, begin_of(2, 0), 16).has_value()) << "another length";
    EXPECT_FALSE(read_begin_state(eight, begin_of(8, 0), 16).has_value()) << "more than samples";
    EXPECT_FALSE(read_begin_state(eight, begin_of(0, kSnapshotBytesMax + 1), 16).has_value());
    EXPECT_FALSE(read_begin_state(eight, begin_of(UINT64_MAX, 9), 16).has_value()) << "overflow";
    const UniqueFd open{::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    EXPECT_FALSE(read_begin_state(open, begin_of(1, 0), 16).has_value()) << "not sealed";
}

}  // namespace
}  // namespace stoker::sidecar
