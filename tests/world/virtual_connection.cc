#include "tests/world/virtual_connection.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::world {

namespace {

using sidecar::PeerChannel;
using sidecar::PeerFrame;

std::size_t bytes_of(const PeerFrame& frame) {
    return frame.head.size() + frame.payload.bytes.size();
}

// The frame with a copy of its payload, like the kernel's: the sender may free its own.
PeerFrame copied(PeerFrame frame) {
    const auto buffer = std::make_shared<std::vector<std::byte>>(
        frame.payload.bytes.begin(), frame.payload.bytes.end());
    frame.payload = {*buffer, buffer};
    return frame;
}

}  // namespace

VirtualConnection::VirtualConnection(const Wire& wire)
    : wire_(wire) {}

void VirtualConnection::set_process(
    Side side, Program& process, std::string node, std::string address) {
    end(side).process = &process;
    end(side).node = std::move(node);
    end(side).address = std::move(address);
}

void VirtualConnection::post(Side side, std::function<void()> task) {
    if (end(side).process == nullptr) {
        return;
    }
    end(side).process->loop().post(
        [self = std::weak_ptr{weak_from_this()}, side, task = std::move(task)] {
            const auto connection = self.lock();
            if (connection != nullptr && connection->end(side).process != nullptr) {
                task();
            }
        });
}

void VirtualConnection::open(
    const sidecar::PeerIdentity& client, const sidecar::PeerIdentity& server) {
    end(kClient).identity = client;
    end(kServer).identity = server;
    arrive(kServer, {.opened = client});
    put_on_way(kServer, {.opened = server}, 0);
}

void VirtualConnection::fail(Side side, const Error& error, Duration delay) {
    wire_.schedule.run_in(delay, [self = std::weak_ptr{weak_from_this()}, side, error] {
        if (const auto connection = self.lock()) {
            connection->arrive(side, {.error = error});
        }
    });
}

void VirtualConnection::close(Side side) {
    End& ours = end(side);
    if (ours.process == nullptr) {
        return;
    }
    ours.events = nullptr;
    if (end(other(side)).events != nullptr) {
        put_on_way(side, {.error = {ErrorCode::kUnavailable, "the peer closed the connection"}}, 0);
    }
    ours.unsent.clear();
    ours.unsent_bytes = 0;
}

void VirtualConnection::lose(Side side, bool is_told) {
    End& ours = end(side);
    if (ours.process == nullptr) {
        return;
    }
    if (is_told && end(other(side)).events != nullptr) {
        put_on_way(side, {.error = {ErrorCode::kUnavailable, "the peer has ended"}}, 0);
    }
    ours.events = nullptr;
    ours.process = nullptr;
    ours.unsent.clear();
    ours.unsent_bytes = 0;
    ours.arrived.clear();
}

void VirtualConnection::send(Side side, PeerFrame frame) {
    STOKER_CHECK(
        !frame.head.empty() && frame.head.size() <= PeerFrame::kHeadMax, "a head has 1 to 64 KiB");
    End& ours = end(side);
    if (ours.events == nullptr) {
        return;
    }
    ours.unsent_bytes += bytes_of(frame);
    ours.unsent.push_back(std::move(frame));
    pump(side);
}

// Passes frames to the kernel while the kernel's buffer has room.
void VirtualConnection::pump(Side side) {
    End& ours = end(side);
    const bool was_high = ours.unsent_bytes > PeerChannel::kUnsentLow;
    while (ours.is_open && !ours.unsent.empty() && ours.buffer_bytes < kBufferBytes) {
        PeerFrame frame = std::move(ours.unsent.front());
        ours.unsent.pop_front();
        const std::size_t bytes = bytes_of(frame);
        ours.unsent_bytes -= bytes;
        ours.buffer_bytes += bytes;
        put_on_way(side, {.frame = copied(std::move(frame))}, bytes);
    }
    if (was_high && ours.unsent_bytes <= PeerChannel::kUnsentLow) {
        post(side, [this, side] {
            if (end(side).events != nullptr) {
                end(side).events->on_drained();
            }
        });
    }
}

// Items of one direction arrive in the order in which they were sent.
void VirtualConnection::put_on_way(Side from, Item item, std::size_t bytes) {
    End& ours = end(from);
    Schedule& schedule = wire_.schedule;
    ours.on_way.push_back(std::move(item));
    const Duration takes = wire_.send(ours.node, end(other(from)).node, bytes);
    ours.last_due = std::max(ours.last_due, schedule.now() + takes);
    schedule.run_in(ours.last_due - schedule.now(), [self = std::weak_ptr{weak_from_this()}, from] {
        if (const auto connection = self.lock()) {
            ++connection->end(from).due;
            connection->on_due(from);
        }
    });
}

void VirtualConnection::on_due(Side from) {
    End& ours = end(from);
    if (wire_.is_cut(ours.node, end(other(from)).node)) {
        return;
    }
    for (; ours.due > 0; --ours.due) {
        Item item = std::move(ours.on_way.front());
        ours.on_way.pop_front();
        if (!ours.is_mute) {
            arrive(other(from), std::move(item));
        }
    }
}

void VirtualConnection::resume() {
    on_due(kClient);
    on_due(kServer);
}

void VirtualConnection::arrive(Side side, Item item) {
    if (end(side).process != nullptr) {
        end(side).arrived.push_back(std::move(item));
        post(side, [this, side] { read(side); });
    }
}

void VirtualConnection::read(Side side) {
    const auto self = shared_from_this();  // an event may destroy the channel
    End& ours = end(side);
    Item item = std::move(ours.arrived.front());
    ours.arrived.pop_front();
    if (item.frame) {
        read_frame(side, *std::move(item.frame));
    } else if (ours.events == nullptr) {
        return;
    } else if (item.opened) {
        ours.is_open = true;
        ours.events->on_open(*item.opened);
        pump(side);
    } else {
        std::exchange(ours.events, nullptr)->on_end(item.error);
    }
}

void VirtualConnection::read_frame(Side side, PeerFrame frame) {
    end(other(side)).buffer_bytes -= bytes_of(frame);
    pump(other(side));
    if (end(side).events == nullptr) {
        return;
    }
    if (!frame.payload.bytes.empty()) {
        auto payload = std::make_shared<std::vector<std::byte>>(
            frame.payload.bytes.begin(), frame.payload.bytes.end());
        wire_.deliver(*this, side, *payload);
        frame.payload = {*payload, payload};
    }
    end(side).events->on_frame(std::move(frame));
}

}  // namespace stoker::world
