// Another process holds the directory's lock but does not lead.
#include <gmock/gmock.h>

#include "sidecar/service/monitor.h"
#include "tests/integration/sidecar_fixture.h"

namespace stoker::test {
namespace {

using testing::HasSubstr;

class SidecarLeaderless : public SidecarTest {
protected:
    SidecarLeaderless() {
        const auto control = domain::control_folder(config.datasets[0].directory);
        EXPECT_TRUE(device->make_folder(control).has_value());
        lock_ = device->try_lock(control + "/lock").value();
    }

    [[nodiscard]] http::ServerResponse get(const std::string& target) const {
        return running->ask([&target, this](sidecar::Sidecar& sidecar) {
            metrics::Registry registry;
            const sidecar::Monitor monitor{sidecar, running->loop(), registry};
            http::ServerRequest request;
            request.peer = "127.0.0.1:1";
            request.method = "GET";
            request.target = target;
            return monitor.answer(request);
        });
    }

    [[nodiscard]] Duration silence() const {
        return running->ask(
            [](sidecar::Sidecar& sidecar) { return sidecar.nodes().front()->leader_silence(); });
    }

    std::unique_ptr<sidecar::DeviceLock> lock_;
};

TEST_F(SidecarLeaderless, ClientsAreRefusedWithTheReason) {
    start();
    SampleClient client{config.socket_path};
    const auto welcome = client.hello("train", 1);
    ASSERT_FALSE(welcome.has_value());
    EXPECT_EQ(welcome.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(welcome.error().message, HasSubstr("holds the lock"));
    SampleClient later{config.socket_path};
    EXPECT_EQ(later.hello("train", 1).error().code, ErrorCode::kUnavailable);

    ASSERT_TRUE(eventually([&] { return silence() > Duration{}; }));
    const auto ready = get("/readyz");
    EXPECT_EQ(ready.status, 200);
    EXPECT_THAT(ready.body, HasSubstr("train: another process holds the lock"));
    EXPECT_THAT(get("/status").body, HasSubstr("holds the lock"));
    EXPECT_THAT(
        get("/metrics").body,
        HasSubstr("stoker_sidecar_leader_silent_seconds{dataset=\"train\"} 1"));
    const auto report =
        running->ask([](sidecar::Sidecar& sidecar) { return sidecar::link_report(sidecar); });
    EXPECT_EQ(report.datasets.at(0).manifest_state, control::ManifestState::kFailed);
    EXPECT_THAT(report.datasets.at(0).error, HasSubstr("holds the lock"));

    lock_.reset();
    SampleClient back{config.socket_path};
    ASSERT_TRUE(eventually([&] {
        back = SampleClient{config.socket_path};
        return back.hello("train", 1).has_value();
    }));
    read_all(back, {1, 2, 3}, 0);
    EXPECT_EQ(silence(), Duration{});
    EXPECT_EQ(get("/readyz").body, "ok\n");
}

}  // namespace
}  // namespace stoker::test
