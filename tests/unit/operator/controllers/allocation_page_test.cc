#include "operator/controllers/grants/allocation_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/core/allocation/snapshot.h"
#include "tests/support/manual_clock.h"

namespace stoker::control {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class AllocationPageTest : public ::testing::Test {
protected:
    LatestAllocation latest;
    testing::ManualClock clock;
    AllocationPage::Leadership leadership{true, "operator-0_1f"};
    AllocationPage page{latest, clock, "0.1.0", [this] { return leadership; }};
};

TEST_F(AllocationPageTest, ShowsInputPlanAndAge) {
    Allocation allocation;
    allocation.decided_at = clock.wall_now();
    allocation.view.nodes = {{"nvme", "n1", gib(4)}};
    allocation.plan.granted_in_pool["nvme"] = gib(1);
    latest.put(allocation);
    clock.advance(seconds{9});
    const AllocationPage::Answer answer = page.answer();
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto read = parse_snapshot(answer.body);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->version, "0.1.0");
    EXPECT_EQ(read->age(), seconds{9});
    EXPECT_EQ(read->view, allocation.view);
    EXPECT_EQ(read->plan, allocation.plan);
}

TEST_F(AllocationPageTest, NamesTheLeaderOnOtherReplicas) {
    leadership = {false, "operator-1_2e"};
    const AllocationPage::Answer answer = page.answer();
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr(R"("leader":"operator-1_2e")"));
}

TEST_F(AllocationPageTest, IsUnavailableBeforeTheFirstPlan) {
    EXPECT_EQ(page.answer().status, 503);
    EXPECT_THAT(page.answer().body, HasSubstr("decided nothing yet"));
}

}  // namespace
}  // namespace stoker::control
