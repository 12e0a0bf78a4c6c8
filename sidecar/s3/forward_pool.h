#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "sidecar/s3/client_socket.h"
#include "sidecar/s3/forward_bound.h"
#include "sidecar/s3/places.h"
#include "sidecar/s3/s3_call.h"

namespace stoker::s3 {

// Threads that forward requests to the origin, one connection each; threads are started on demand.
// An object whose version turns out not to be the listed one is read at the origin from then on.
// Thread-safe.
class ForwardPool {
public:
    struct Job {
        ClientSocket socket;
        std::string buffered;  // bytes read from the socket after the request's head
        S3Call call;
        std::string request_id;
        ForwardBound bound;
        // Receives the connection back, with the first bytes of the next request. Not called if the
        // connection has ended.
        std::function<void(ClientSocket, std::string buffered)> give_back;
    };

    // `places` and `clock` must outlive the pool. `patience`: see ForwardCall.
    ForwardPool(
        const Places& places, const Clock& clock, std::size_t threads_max, Duration patience);
    ForwardPool(const ForwardPool&) = delete;
    ForwardPool& operator=(const ForwardPool&) = delete;
    // Drops waiting jobs and cuts the connections of running ones, then joins.
    ~ForwardPool();

    // The queue holds at most one job for each connection of the endpoint.
    void post(Job job);

private:
    void run();
    void serve(void* easy, Job job);

    const Places& places_;
    const Clock& clock_;
    std::size_t threads_max_;
    Duration patience_;
    std::mutex mutex_;  // guards the members below
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    std::set<int> running_;  // sockets of the running jobs
    std::size_t idle_ = 0;
    std::atomic<bool> is_stopping_{false};
    std::vector<std::jthread> threads_;
};

}  // namespace stoker::s3
