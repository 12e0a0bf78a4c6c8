#include "node/service/operator_loop.h"

#include <chrono>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/node/service/fakes.h"

namespace stoker::node {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

class FakeOperator final : public OperatorClient {
public:
    Result<v1::NodeOrders> report(const v1::NodeReport& report, Duration /*limit*/) override {
        last = report;
        return answer;
    }

    v1::NodeReport last;
    Result<v1::NodeOrders> answer = v1::NodeOrders{};
};

class Loop : public ::testing::Test {
protected:
    stoker::test::TempFolder folder_;
    UniqueFd root_{::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY)};
    test::FakeMounts mounts_;
    testing::ManualClock clock_;
    PoolKeeper keeper_{{mounts_, clock_, root_.get(), {::geteuid(), ::getegid()}}};
    FakeOperator operator_;
    NodeMetrics metrics_;
    OperatorLoop loop_{keeper_, operator_, {"node-1", "boot-1"}, 1, metrics_};
};

TEST_F(Loop, SendsItsIdentityAndExecutesOrders) {
    v1::NodeOrders orders;
    orders.add_pools()->set_pool("nvme");
    orders.mutable_pools(0)->set_path("/mnt/nvme");
    orders.set_next_call_seconds(7);
    operator_.answer = orders;
    EXPECT_EQ(loop_.step(), seconds{7});
    EXPECT_EQ(operator_.last.node(), "node-1");
    EXPECT_EQ(operator_.last.boot_id(), "boot-1");
    loop_.step();
    ASSERT_EQ(operator_.last.pools_size(), 1);
    EXPECT_EQ(operator_.last.pools(0).verdict(), v1::POOL_VERDICT_READY);
}

TEST_F(Loop, ExposesPoolsUntilTheyEnd) {
    const auto pools = [](const std::string& name) {
        v1::NodeOrders orders;
        orders.add_pools()->set_pool(name);
        orders.mutable_pools(0)->set_path("/mnt/" + name);
        return orders;
    };
    operator_.answer = pools("nvme");
    loop_.step();
    loop_.step();
    EXPECT_THAT(metrics_.expose(), HasSubstr("stoker_node_pool_ready{pool=\"nvme\"} 1\n"));
    operator_.answer = pools("ssd");
    loop_.step();
    loop_.step();
    const std::string told = metrics_.expose();
    EXPECT_THAT(told, HasSubstr("stoker_node_pool_ready{pool=\"ssd\"} 1\n"));
    EXPECT_THAT(told, Not(HasSubstr("nvme")));
    EXPECT_THAT(told, HasSubstr("stoker_node_calls_total{result=\"answered\"} 4\n"));
}

TEST_F(Loop, ClampsTheCallIntervalSetByTheOperator) {
    EXPECT_EQ(loop_.step(), OperatorLoop::kPaceMin);
    operator_.answer->set_next_call_seconds(4'000'000'000U);
    EXPECT_EQ(loop_.step(), OperatorLoop::kPaceMax);
}

TEST_F(Loop, RetriesSoonWithoutAResponse) {
    operator_.answer = fail(ErrorCode::kUnavailable, "no route");
    for (int i = 0; i < 20; ++i) {
        const Duration wait = loop_.step();
        EXPECT_GE(wait, OperatorLoop::kRetry / 2);
        EXPECT_LE(wait, OperatorLoop::kRetry * 3 / 2);
    }
}

}  // namespace
}  // namespace stoker::node
