#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/runtime/event_loop.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/device/device.h"
#include "sidecar/peers/peer_network.h"
#include "sidecar/service/sidecar.h"

namespace stoker::test {

// A Sidecar on its own loop and thread. The constructor returns when it listens; the destructor
// stops it as SIGTERM does. `make_peers` creates the peer network. `device` and the factory's
// objects must outlive it.
class RunningSidecar {
public:
    using MakePeers = std::function<std::unique_ptr<sidecar::PeerNetwork>(EventLoop&)>;

    RunningSidecar(
        sidecar::SidecarConfig config,
        sidecar::Device& device,
        sidecar::OriginFactory make_origin,
        std::string boot_id = "boot-1",
        const MakePeers& make_peers = {});
    RunningSidecar(const RunningSidecar&) = delete;
    RunningSidecar& operator=(const RunningSidecar&) = delete;
    ~RunningSidecar();

    // Runs `question` on the loop and returns its answer.
    template <class Question>
    auto ask(Question question) {
        std::promise<decltype(question(*sidecar_))> answer;
        loop_.post([&] { answer.set_value(question(*sidecar_)); });
        return answer.get_future().get();
    }

    [[nodiscard]] EventLoop& loop() { return loop_; }

private:
    SystemClock clock_;
    EventLoop loop_{clock_};
    sidecar::SidecarConfig config_;
    std::unique_ptr<sidecar::PeerNetwork> peers_;  // nullptr: none
    std::unique_ptr<sidecar::Sidecar> sidecar_;
    std::thread thread_;
};

}  // namespace stoker::test
