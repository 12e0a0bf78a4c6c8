#include "sidecar/s3/event_thread.h"

#include <chrono>
#include <utility>
#include <vector>

#include "common/runtime/named_thread.h"

namespace stoker::s3 {

namespace {

constexpr Duration kSweepInterval = std::chrono::seconds{1};
constexpr std::size_t kSegmentFilesMax = 256;

// Makes a move-only value, such as a socket, copyable: EventLoop copies its tasks.
template <class T>
std::shared_ptr<T> shared(T value) {
    return std::make_shared<T>(std::move(value));
}

}  // namespace

EventThread::EventThread(
    const LoopbackKey& key,
    const Places& places,
    const Clock& clock,
    attached::FetchPool& fetches,
    ForwardPool& forwards,
    ClientSocket::Counter connections,
    std::size_t connections_max)
    : clock_(clock),
      fetches_(fetches),
      forwards_(forwards),
      connections_count_(std::move(connections)),
      connections_max_(connections_max),
      loop_(clock),
      sweep_timer_(loop_),
      segments_(kSegmentFilesMax),
      parts_{key, places, clock, segments_} {
    thread_ = start_thread("s3-events", [this](const auto&) {
        sweep();
        loop_.run();
    });
}

EventThread::~EventThread() {
    stop();
}

void EventThread::stop() {
    loop_.stop();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void EventThread::adopt(ClientSocket socket) {
    loop_.post([this, held = shared(std::move(socket))] { insert(std::move(*held), {}); });
}

void EventThread::end_soon() {
    loop_.post([this] {
        is_ending_ = true;
        std::vector<Id> idle;
        for (const auto& [id, connection] : connections_) {
            connection->end_soon();
            if (connection->is_idle()) {
                idle.push_back(id);
            }
        }
        for (const Id id : idle) {
            erase(id);
        }
    });
}

void EventThread::insert(ClientSocket socket, std::string buffered) {
    if (connections_count_->load(std::memory_order_relaxed) > connections_max_ && !make_room()) {
        return;
    }
    const Id id = next_id_++;
    const int fd = socket.fd();
    auto connection = std::make_unique<Connection>(std::move(socket), std::move(buffered), parts_);
    if (is_ending_) {
        connection->end_soon();
    }
    connections_.emplace(id, std::move(connection));
    loop_.watch(fd, [this, id](IoReady) { on_ready(id); });
    drive(id);
}

void EventThread::on_ready(Id id) {
    if (connections_.at(id)->is_fetching()) {
        erase(id);  // while fetching, the socket reports only a hang-up
        return;
    }
    drive(id);
}

void EventThread::drive(Id id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
        return;
    }
    Connection& connection = *found->second;
    const Connection::Next next = connection.advance();
    for (Connection::Fetch& fetch : connection.take_fetches()) {
        begin_fetch(id, std::move(fetch));
    }
    switch (next) {
        case Connection::Next::kRead:
            loop_.set_interest(connection.fd(), true, false);
            break;
        case Connection::Next::kWrite:
            loop_.set_interest(connection.fd(), false, true);
            break;
        case Connection::Next::kFetch:
            loop_.set_interest(connection.fd(), false, false);
            break;
        case Connection::Next::kForward:
            begin_forward(id);
            break;
        case Connection::Next::kClose:
            erase(id);
            break;
    }
}

void EventThread::begin_fetch(Id id, Connection::Fetch fetch) {
    fetches_.get(
        *fetch.dataset,
        std::move(fetch.files),
        fetch.id,
        fetch.range_bytes,
        [this, id, index = fetch.index](attached::FetchPool::Answer answer) {
            loop_.post([this, id, index, held = shared(std::move(answer))] {
                if (const auto found = connections_.find(id); found != connections_.end()) {
                    found->second->on_fetched(index, std::move(*held));
                    drive(id);
                }
            });
        });
}

void EventThread::begin_forward(Id id) {
    const auto found = connections_.find(id);
    loop_.forget(found->second->fd());
    Connection::Forward forward = found->second->take_forward();
    connections_.erase(found);
    forwards_.post(
        {std::move(forward.socket),
         std::move(forward.buffered),
         std::move(forward.call),
         std::move(forward.request_id),
         std::move(forward.bound),
         [this](ClientSocket socket, std::string buffered) {
             loop_.post([this, held = shared(std::move(socket)), rest = std::move(buffered)] {
                 insert(std::move(*held), rest);
             });
         }});
}

void EventThread::erase(Id id) {
    const auto found = connections_.find(id);
    loop_.forget(found->second->fd());
    connections_.erase(found);
}

// Closes the connection that has been idle for longest. False: no connection is idle.
bool EventThread::make_room() {
    Id oldest = 0;
    TimePoint due = TimePoint::max();
    for (const auto& [id, connection] : connections_) {
        if (connection->is_idle() && connection->deadline() < due) {
            oldest = id;
            due = connection->deadline();
        }
    }
    if (oldest != 0) {
        erase(oldest);
    }
    return oldest != 0;
}

void EventThread::sweep() {
    segments_.retire_unlinked();
    const TimePoint now = clock_.now();
    std::vector<Id> late;
    for (const auto& [id, connection] : connections_) {
        if (connection->deadline() < now) {
            late.push_back(id);
        }
    }
    for (const Id id : late) {
        erase(id);
    }
    sweep_timer_.run_in(kSweepInterval, [this] { sweep(); });
}

}  // namespace stoker::s3
