#include "tests/support/memory_network.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "common/base/check.h"

namespace stoker::test {

using sidecar::PeerEvents;
using sidecar::PeerFrame;

namespace {

constexpr const char* kPort = ":1";

PeerFrame corrupted(const PeerFrame& frame) {
    auto bytes = std::make_shared<std::vector<std::byte>>(
        frame.payload.bytes.begin(), frame.payload.bytes.end());
    if (!bytes->empty()) {
        bytes->front() ^= std::byte{1};
    }
    return {frame.head, {*bytes, bytes}};
}

}  // namespace

// One connection. Everything is guarded by the switch's mutex. `events` is used only in tasks of
// its side's loop; nullptr: the side has closed, or has got its last event.
struct MemoryPipe : std::enable_shared_from_this<MemoryPipe> {
    struct Side {
        std::string node;
        EventLoop* loop = nullptr;  // nullptr: no peer
        PeerEvents* events = nullptr;
        std::vector<PeerFrame> kept{};  // sent by this side while it was stalled
    };

    explicit MemoryPipe(std::recursive_mutex& guard)
        : mutex(guard) {}

    // Calls `event` with the PeerEvents of the side `to`, in a task of that side's loop, if the
    // side is still open.
    void post(std::size_t to, std::function<void(PeerEvents&)> event, bool is_last = false) {
        const std::lock_guard lock{mutex};
        if (sides.at(to).loop == nullptr) {
            return;
        }
        sides.at(to).loop->post([self = shared_from_this(), to, is_last, event = std::move(event)] {
            PeerEvents* events = nullptr;
            {
                const std::lock_guard guard{self->mutex};
                events = self->sides.at(to).events;
                if (is_last) {
                    self->sides.at(to).events = nullptr;
                }
            }
            if (events != nullptr) {
                event(*events);
            }
        });
    }

    void deliver(std::size_t to, PeerFrame frame) {
        post(to, [frame = std::move(frame)](PeerEvents& events) { events.on_frame(frame); });
    }

    void end(std::size_t to) {
        post(
            to,
            [](PeerEvents& events) {
                events.on_end({ErrorCode::kUnavailable, "the connection ended"});
            },
            true);
    }

    std::recursive_mutex& mutex;
    std::array<Side, 2> sides;  // the side that connected, the side that accepted
};

namespace {

class MemoryChannel final : public sidecar::PeerChannel {
public:
    using Send = std::function<void(PeerFrame)>;

    MemoryChannel(std::shared_ptr<MemoryPipe> pipe, std::size_t side, Send send)
        : pipe_(std::move(pipe)),
          side_(side),
          send_(std::move(send)) {}

    ~MemoryChannel() override {
        const std::lock_guard lock{pipe_->mutex};
        pipe_->sides.at(side_).events = nullptr;
        pipe_->end(1 - side_);
    }

    void send(PeerFrame frame) override { send_(std::move(frame)); }

    // Only frames of a stalled node are unsent.
    [[nodiscard]] std::size_t unsent_bytes() const override {
        const std::lock_guard lock{pipe_->mutex};
        std::size_t bytes = 0;
        for (const PeerFrame& frame : pipe_->sides.at(side_).kept) {
            bytes += frame.head.size() + frame.payload.bytes.size();
        }
        return bytes;
    }

private:
    std::shared_ptr<MemoryPipe> pipe_;
    std::size_t side_;
    Send send_;
};

}  // namespace

void MemorySwitch::cut(const std::string& node) {
    const std::lock_guard lock{mutex_};
    nodes_[node].is_cut = true;
    for (const auto& weak : pipes_) {
        const auto pipe = weak.lock();
        if (pipe != nullptr && (pipe->sides[0].node == node || pipe->sides[1].node == node)) {
            pipe->end(0);
            pipe->end(1);
        }
    }
}

void MemorySwitch::stall(const std::string& node) {
    const std::lock_guard lock{mutex_};
    nodes_[node].is_stalled = true;
}

void MemorySwitch::corrupt(const std::string& node) {
    const std::lock_guard lock{mutex_};
    nodes_[node].is_corrupt = true;
}

void MemorySwitch::heal(const std::string& node) {
    const std::lock_guard lock{mutex_};
    Node& healed = nodes_[node];
    healed.is_cut = healed.is_stalled = healed.is_corrupt = false;
    for (const auto& weak : pipes_) {
        const auto pipe = weak.lock();
        for (std::size_t side = 0; pipe != nullptr && side < 2; ++side) {
            if (pipe->sides.at(side).node != node) {
                continue;
            }
            for (PeerFrame& frame : std::exchange(pipe->sides.at(side).kept, {})) {
                pipe->deliver(1 - side, std::move(frame));
            }
        }
    }
}

std::uint64_t MemorySwitch::payloads_of(const std::string& node) const {
    const std::lock_guard lock{mutex_};
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? 0 : found->second.payloads;
}

MemoryNetwork::MemoryNetwork(
    MemorySwitch& hub, EventLoop& loop, std::string node, sidecar::PeerIdentity identity)
    : hub_(hub),
      loop_(loop),
      node_(std::move(node)) {
    const std::lock_guard lock{hub_.mutex_};
    hub_.nodes_[node_].identity = std::move(identity);
}

MemoryNetwork::~MemoryNetwork() {
    const std::lock_guard lock{hub_.mutex_};
    hub_.nodes_[node_].loop = nullptr;
    hub_.nodes_[node_].accept = nullptr;
    for (const auto& weak : hub_.pipes_) {
        const auto pipe = weak.lock();
        for (std::size_t side = 0; pipe != nullptr && side < 2; ++side) {
            if (pipe->sides.at(side).node == node_) {
                pipe->sides.at(side).loop = nullptr;
                pipe->end(1 - side);
            }
        }
    }
}

Result<std::string> MemoryNetwork::listen(Accept accept) {
    const std::lock_guard lock{hub_.mutex_};
    hub_.nodes_[node_].loop = &loop_;
    hub_.nodes_[node_].accept = std::move(accept);
    return node_ + kPort;
}

std::unique_ptr<sidecar::PeerChannel> MemoryNetwork::connect(
    const std::string& address, PeerEvents& events) {
    const std::string target = address.substr(0, address.rfind(kPort));
    auto pipe = std::make_shared<MemoryPipe>(hub_.mutex_);
    pipe->sides[0] = {node_, &loop_, &events};
    const std::lock_guard lock{hub_.mutex_};
    hub_.pipes_.push_back(pipe);
    const auto channel = [&](std::size_t side) {
        return std::make_unique<MemoryChannel>(
            pipe, side, [&hub = hub_, pipe = pipe.get(), side](PeerFrame frame) {
                const std::lock_guard guard{hub.mutex_};
                auto& from = pipe->sides.at(side);
                MemorySwitch::Node& sender = hub.nodes_[from.node];
                sender.payloads += frame.payload.bytes.empty() ? 0 : 1;
                PeerFrame sent = sender.is_corrupt ? corrupted(frame) : std::move(frame);
                if (sender.is_stalled) {
                    from.kept.push_back(std::move(sent));
                } else {
                    pipe->deliver(1 - side, std::move(sent));
                }
            });
    };
    MemorySwitch::Node& there = hub_.nodes_[target];
    if (there.loop == nullptr || there.is_cut || hub_.nodes_[node_].is_cut) {
        pipe->end(0);
        return channel(0);
    }
    pipe->sides[1] = {target, there.loop, nullptr};
    there.loop->post(
        [&hub = hub_,
         pipe,
         target,
         theirs = hub_.nodes_[node_].identity,
         ours = there.identity,
         accepted = std::make_shared<std::unique_ptr<sidecar::PeerChannel>>(channel(1))] {
            sidecar::PeerNetwork::Accept accept;
            {
                const std::lock_guard guard{hub.mutex_};
                accept = hub.nodes_[target].accept;
            }
            if (!accept) {
                return;  // the channel's end tells the other side
            }
            PeerEvents& session = accept(std::move(*accepted));
            {
                const std::lock_guard guard{hub.mutex_};
                pipe->sides[1].events = &session;
            }
            session.on_open(theirs);
            pipe->post(0, [ours](PeerEvents& asker) { asker.on_open(ours); });
        });
    return channel(0);
}

}  // namespace stoker::test
