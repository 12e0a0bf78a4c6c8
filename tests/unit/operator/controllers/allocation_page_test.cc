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
    [[nodiscard]] PageAnswer page() const {
        return allocation_page(allocation, clock.wall_now(), "0.1.0", leadership);
    }

    Allocation allocation;
    testing::ManualClock clock;
    Leadership leadership{true, "operator-0_1f"};
};

TEST_F(AllocationPageTest, ShowsInputPlanAndAge) {
    allocation.decided_at = clock.wall_now();
    allocation.view.nodes = {{"nvme", "n1", gib(4)}};
    allocation.plan.granted_in_pool["nvme"] = gib(1);
    clock.advance(seconds{9});
    const PageAnswer answer = page();
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
    const PageAnswer answer = page();
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr(R"("leader":"operator-1_2e")"));
}

TEST_F(AllocationPageTest, IsUnavailableBeforeTheFirstPlan) {
    EXPECT_EQ(page().status, 503);
    EXPECT_THAT(page().body, HasSubstr("has not made a plan yet"));
}

}  // namespace
}  // namespace stoker::control
