#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "sidecar/service/peer_fetches.h"
#include "tests/support/manual_clock.h"
#include "tests/support/memory_network.h"

namespace stoker::sidecar {

// The peer's side: answers a Hello, and keeps the frames that it receives.
class ScriptedPeer final : public PeerEvents {
public:
    explicit ScriptedPeer(PeerHello hello)
        : hello_(std::move(hello)) {}

    PeerEvents& accept(std::unique_ptr<PeerChannel> made) {
        channel = std::move(made);
        ++connections;
        return *this;
    }

    void on_open(const PeerIdentity& peer) override { identity = peer; }

    void on_frame(PeerFrame frame) override {
        const auto message = decode_peer_head(frame.head);
        ASSERT_TRUE(message.has_value());
        if (std::holds_alternative<PeerHello>(*message)) {
            if (greets) {
                channel->send({encode_peer_head(hello_), {}});
            }
        } else if (const auto* losses = std::get_if<PeerLosses>(&*message)) {
            told.push_back(losses->epoch);
        } else {
            asks.push_back(std::get<PeerAsk>(*message));
        }
    }

    void on_end(const Error& /*error*/) override { channel.reset(); }

    void answer(SampleIndex sample) {
        channel->send({encode_peer_head(PeerAnswer{1, sample, 0}), {}});
    }

    void refuse(SampleIndex sample) {
        channel->send({encode_peer_head(PeerRefusal{1, sample, PeerRefusalReason::kNotMine}), {}});
    }

    [[nodiscard]] std::vector<SampleIndex> asked() const {
        std::vector<SampleIndex> samples;
        for (const PeerAsk& ask : asks) {
            samples.insert(samples.end(), ask.samples.begin(), ask.samples.end());
        }
        return samples;
    }

    std::unique_ptr<PeerChannel> channel;
    PeerIdentity identity;
    std::vector<PeerAsk> asks;
    std::vector<std::uint64_t> told;  // the epochs of the losses received
    int connections = 0;
    bool greets = true;

private:
    PeerHello hello_;
};

// We are node "a"; the other node "b" is scripted. `theirs` are samples that it owns, `ours` those
// that we own.
class PeerFetchesTest : public ::testing::Test {
protected:
    PeerFetchesTest() {
        EXPECT_TRUE(there.listen(
            [this](auto channel) -> PeerEvents& { return peer.accept(std::move(channel)); }));
        set_group({"a", "b"});
        for (SampleIndex sample = 0; sample < kSamples; ++sample) {
            (placement->is_own(sample) ? ours : theirs).push_back(sample);
        }
    }

    static PeerHello hello(const std::string& node, std::uint64_t generation) {
        return {"uid", domain::RevisionId{9}, node, generation};
    }

    void set_group(const std::vector<std::string>& nodes, std::uint64_t generation = 5) {
        std::vector<control::PeerMember> members;
        for (const std::string& node : nodes) {
            members.push_back({node, node + ":1", generation});
        }
        placement = std::make_shared<Placement>(
            SampleSizes{sizes},
            [this](SampleIndex sample) -> std::string_view { return keys[sample]; },
            nodes,
            0);
        fetches.set_group(placement, members);
    }

    static std::vector<std::string> numbered() {
        std::vector<std::string> names;
        for (SampleIndex sample = 0; sample < kSamples; ++sample) {
            names.push_back("key-" + std::to_string(sample));
        }
        return names;
    }

    void pass(Duration time = {}) {
        clock.advance(time);
        for (int i = 0; i < 20; ++i) {
            loop.step(Duration{});
        }
    }

    // Advances time in small steps, so that timers run as in production.
    void wait(Duration time) {
        for (Duration passed{}; passed < time; passed += std::chrono::milliseconds{50}) {
            pass(std::chrono::milliseconds{50});
        }
    }

    // Sends enough answers for an estimate, each after a millisecond.
    void warm_up() {
        for (std::size_t i = 0; i < 2 * AnswerTimes::kAnswersMin; ++i) {
            ASSERT_TRUE(fetches.ask(theirs[i]));
            pass();
            clock.advance(std::chrono::milliseconds{1});
            peer.answer(theirs[i]);
            pass();
        }
        arrived.clear();
        peer.asks.clear();
    }

    void take_over(SampleIndex sample) {
        ASSERT_TRUE(fetches.takes_over(sample));
        ASSERT_TRUE(fetches.ask(sample));
    }

    static constexpr SampleIndex kSamples = 2000;

    stoker::testing::ManualClock clock;
    EventLoop loop{clock};
    test::MemorySwitch hub;
    test::MemoryNetwork here{hub, loop, "a", {"team", {"uid"}}};
    test::MemoryNetwork there{hub, loop, "b", {"team", {"uid"}}};
    ScriptedPeer peer{hello("b", 5)};
    std::vector<std::uint64_t> sizes = std::vector<std::uint64_t>(kSamples, 10);
    std::vector<std::string> keys = numbered();
    std::vector<SampleIndex> arrived;
    std::vector<SampleIndex> slow;
    std::vector<SampleIndex> at_origin;
    PeerFetches fetches{
        loop,
        here,
        {"team", hello("a", 3)},
        {[this](SampleIndex sample, const HeldBytes&, std::uint32_t, const std::string&) {
             arrived.push_back(sample);
         },
         [this](SampleIndex sample) { slow.push_back(sample); },
         [this](SampleIndex sample) { at_origin.push_back(sample); }}};
    std::shared_ptr<const Placement> placement;
    std::vector<SampleIndex> theirs;
    std::vector<SampleIndex> ours;
};

}  // namespace stoker::sidecar
