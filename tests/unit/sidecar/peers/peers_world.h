#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/runtime/event_loop.h"
#include "sidecar/peers/tls_network.h"
#include "tests/unit/sidecar/peers/frames.h"
#include "tests/unit/sidecar/peers/peer_credentials.h"

namespace stoker::test {

// Remembers a channel's events, and owns the channel unless a hook destroys it.
struct RecordedPeer final : sidecar::PeerEvents {
    std::unique_ptr<sidecar::PeerChannel> channel{};
    std::optional<sidecar::PeerIdentity> identity{};
    std::vector<sidecar::PeerFrame> frames{};
    int drained = 0;
    std::optional<Error> end{};
    std::function<void()> after_event{};  // may destroy the channel and the network

    void on_open(const sidecar::PeerIdentity& peer) override {
        EXPECT_FALSE(identity || end);
        identity = peer;
        call_hook();
    }

    void on_frame(sidecar::PeerFrame frame) override {
        EXPECT_TRUE(identity && !end);
        frames.push_back(std::move(frame));
        call_hook();
    }

    void on_drained() override {
        ++drained;
        call_hook();
    }

    void on_end(const Error& error) override {
        EXPECT_FALSE(end);
        end = error;
        call_hook();
    }

    [[nodiscard]] std::string end_code() const {
        return end ? std::string{to_string(end->code)} : "no end";
    }

private:
    void call_hook() const {
        if (after_event) {
            after_event();
        }
    }
};

// One node: a network and the peers that have connected to it. They may send payloads of any size.
struct PeerNode {
    explicit PeerNode(EventLoop& loop, sidecar::TlsNetwork::Options options = any_payloads())
        : network(std::make_unique<sidecar::TlsNetwork>(loop, std::move(options))) {}

    static sidecar::TlsNetwork::Options any_payloads() {
        sidecar::TlsNetwork::Options options{.host = "127.0.0.1"};
        options.limits.asked_max = options.limits.payload_max;
        return options;
    }

    std::unique_ptr<sidecar::TlsNetwork> network;
    std::vector<std::unique_ptr<RecordedPeer>> guests{};

    // Returns our address.
    std::string listen() {
        return network
            ->listen([this](std::unique_ptr<sidecar::PeerChannel> channel) -> RecordedPeer& {
                guests.push_back(std::make_unique<RecordedPeer>());
                guests.back()->channel = std::move(channel);
                return *guests.back();
            })
            .value();
    }

    std::unique_ptr<RecordedPeer> connect(const std::string& address) {
        auto peer = std::make_unique<RecordedPeer>();
        peer->channel = network->connect(address, *peer);
        return peer;
    }
};

// Nodes of one cluster, all on the test's thread but for the networks' own threads.
struct PeersTest : ::testing::Test {
    SystemClock clock{};
    EventLoop loop{clock};
    const PeerAuthority authority{};

    // Runs the loop until `condition` holds. False: it did not within the limit, which is only
    // reached by broken tests.
    template <class Condition>
    bool until(Condition condition, Duration limit = std::chrono::seconds{60}) {
        for (const TimePoint end = clock.now() + limit; clock.now() < end && !condition();) {
            loop.step(std::chrono::milliseconds{20});
        }
        return condition();
    }

    sidecar::PeerCredentials ours() { return authority.credentials({}); }
};

}  // namespace stoker::test
