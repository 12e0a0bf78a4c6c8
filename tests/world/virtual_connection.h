#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/peers/peer_network.h"
#include "tests/world/schedule.h"

namespace stoker::world {

class VirtualConnection;

// Functions of the network that a connection between two sidecars uses.
struct Wire {
    Schedule& schedule;
    // Puts `bytes` on the link between two nodes; returns how long they take to arrive.
    std::function<Duration(const std::string& from, const std::string& to, std::size_t bytes)> send;
    // Whether no byte arrives over this link now.
    std::function<bool(const std::string& from, const std::string& to)> is_cut;
    // A payload has arrived at the end `to`; the network may change its bytes.
    std::function<void(
        const VirtualConnection& connection, std::size_t to, std::vector<std::byte>& payload)>
        deliver;
};

// A TCP connection with TLS between two sidecars' processes: bytes arrive in order, each end has
// bounded buffers in the kernel, and learns when the other end closes, unless the link is cut. Its
// events run on the loops of the ends' processes. Shared by the channels of both ends. Not
// thread-safe.
class VirtualConnection final : public std::enable_shared_from_this<VirtualConnection> {
public:
    enum Side : std::size_t { kClient, kServer };

    // Bytes that the kernels hold for one direction: on the way, or not read by the other process.
    static constexpr std::size_t kBufferBytes = std::size_t{256} << 10U;

    // `wire` outlives it.
    explicit VirtualConnection(const Wire& wire);
    VirtualConnection(const VirtualConnection&) = delete;
    VirtualConnection& operator=(const VirtualConnection&) = delete;

    // The process of this end; it stays until lose() or the end's channel is closed.
    void set_process(Side side, Program& process, std::string node, std::string address);

    // Replaces the receiver of the end's events.
    void set_events(Side side, sidecar::PeerEvents& events) { end(side).events = &events; }

    // The handshake is done: both ends learn who the other one is.
    void open(const sidecar::PeerIdentity& client, const sidecar::PeerIdentity& server);

    // The end receives `error` after `delay`, behind what has arrived; the other end learns nothing.
    void fail(Side side, const Error& error, Duration delay = {});

    // The end's channel is destroyed; the other end learns of that over the link.
    void close(Side side);

    // The end's process is gone: killed, or with its node. Only in the first case does the kernel tell
    // the other end.
    void lose(Side side, bool is_told);

    // From now on no bytes of this end reach the other end, which learns no reason.
    void mute(Side side) { end(side).is_mute = true; }

    // Delivers the items that a cut has held back.
    void resume();

    void send(Side side, sidecar::PeerFrame frame);

    [[nodiscard]] std::size_t unsent_bytes(Side side) const { return ends_.at(side).unsent_bytes; }

    // Whether the end still receives events.
    [[nodiscard]] bool is_alive(Side side) const { return ends_.at(side).events != nullptr; }

    // Whether the end's handshake is done.
    [[nodiscard]] bool is_open(Side side) const { return ends_.at(side).is_open; }

    // The end's process; nullptr: it is gone.
    [[nodiscard]] const Program* process(Side side) const { return ends_.at(side).process; }

    [[nodiscard]] const std::string& node(Side side) const { return ends_.at(side).node; }

    [[nodiscard]] const std::string& address(Side side) const { return ends_.at(side).address; }

    // The identity in the end's certificate. Call it once the connection is open.
    [[nodiscard]] const sidecar::PeerIdentity& identity(Side side) const {
        return ends_.at(side).identity;
    }

    static Side other(Side side) { return side == kClient ? kServer : kClient; }

    // Runs `task` on the loop of the end's process, unless it is gone by then.
    void post(Side side, std::function<void()> task);

private:
    // One thing that reaches an end: the end of the handshake, a frame, or the end of the connection.
    struct Item {
        std::optional<sidecar::PeerIdentity> opened{};
        std::optional<sidecar::PeerFrame> frame{};
        Error error{};
    };

    struct End {
        Program* process = nullptr;
        std::string node;
        std::string address;
        sidecar::PeerIdentity identity;
        sidecar::PeerEvents* events = nullptr;  // nullptr: the end gets no more events
        bool is_open = false;
        bool is_mute = false;
        std::deque<sidecar::PeerFrame> unsent;
        std::size_t unsent_bytes = 0;
        std::deque<Item> on_way;       // sent by this end
        std::size_t due = 0;           // items of on_way that wait for the end of a cut
        std::size_t buffer_bytes = 0;  // sent by this end, and not read by the other process
        TimePoint last_due{};
        std::deque<Item> arrived;  // not read by this end's process
    };

    [[nodiscard]] End& end(Side side) { return ends_.at(side); }

    void put_on_way(Side from, Item item, std::size_t bytes);
    void on_due(Side from);
    void arrive(Side side, Item item);
    void read(Side side);
    void read_frame(Side side, sidecar::PeerFrame frame);
    void pump(Side side);

    const Wire& wire_;
    std::array<End, 2> ends_;
};

}  // namespace stoker::world
