#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "common/runtime/event_loop.h"
#include "sidecar/attached/fetch_pool.h"
#include "sidecar/s3/connection.h"
#include "sidecar/s3/forward_pool.h"

namespace stoker::s3 {

// One thread that serves a share of the endpoint's connections.
class EventThread {
public:
    // The arguments must outlive this object. `connections_max`: for the whole endpoint; beyond it,
    // the connection that has been idle for longest is closed.
    EventThread(
        const LoopbackKey& key,
        const Places& places,
        const Clock& clock,
        attached::FetchPool& fetches,
        ForwardPool& forwards,
        ClientSocket::Counter connections,
        std::size_t connections_max);
    EventThread(const EventThread&) = delete;
    EventThread& operator=(const EventThread&) = delete;
    // Closes all connections and joins. End the pools first, because they post to this thread.
    ~EventThread();

    // Any thread: serves a new connection.
    void adopt(ClientSocket socket);

    // Any thread: ends each connection after its current request.
    void end_soon();

    // Any thread: after this call returns, no task runs and no connection is served.
    void stop();

private:
    using Id = std::uint64_t;

    void insert(ClientSocket socket, std::string buffered);
    void on_ready(Id id);
    void drive(Id id);
    void begin_fetch(Id id, Connection::Fetch fetch);
    void begin_forward(Id id);
    void erase(Id id);
    bool make_room();
    void sweep();

    const Clock& clock_;
    attached::FetchPool& fetches_;
    ForwardPool& forwards_;
    ClientSocket::Counter connections_count_;
    std::size_t connections_max_;
    EventLoop loop_;
    LoopTimer sweep_timer_;
    SegmentFiles segments_;
    ConnectionParts parts_;
    std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
    Id next_id_ = 1;
    bool is_ending_ = false;
    std::jthread thread_;
};

}  // namespace stoker::s3
