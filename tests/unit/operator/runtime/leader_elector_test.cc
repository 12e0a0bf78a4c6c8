#include "operator/runtime/leader_elector.h"

#include <gtest/gtest.h>

#include "tests/support/manual_clock.h"

namespace stoker::control {
namespace {

using std::chrono::milliseconds;

// An API server without a Lease that takes each Lease that is written.
class EmptyServer final : public ApiTransport {
public:
    Result<ApiResponse> call(
        const ApiRequest& request, Duration /*time_limit*/, std::stop_token /*stop*/) override {
        return request.verb == Verb::kGet ? ApiResponse{404} : ApiResponse{201, request.body};
    }

    Result<ApiStreamEnd> stream(
        const ApiRequest& /*request*/,
        Duration /*time_limit*/,
        const ApiStreamSink& /*sink*/,
        std::stop_token /*stop*/) override {
        return fail(ErrorCode::kUnavailable, "no streams here");
    }
};

TEST(LeaderElector, MayNotWriteAfterTheRenewalDeadlineEvenIfItsThreadIsBusy) {
    EmptyServer server;
    testing::ManualClock clock;
    const LeaseTiming timing;
    LeaderElector elector(server, {{"ns", "operator"}, "me", timing}, clock, 1);
    const auto end = elector.run({}, [&] {
        clock.advance(timing.renew_deadline - milliseconds{1});
        EXPECT_TRUE(elector.may_write());
        clock.advance(milliseconds{1});
        EXPECT_FALSE(elector.may_write());
        EXPECT_TRUE(elector.leads()) << "its thread is still busy";
    });
    EXPECT_EQ(end, LeaderElector::End::kLost);
}

}  // namespace
}  // namespace stoker::control
