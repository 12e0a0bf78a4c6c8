#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/http/http_client.h"

namespace stoker::http {

class CurlCall;

// Sends requests on its callers' threads, which wait for the response; it has no thread of its own.
// For callers that may block; HttpClient serves callers that may not. Repeated requests, errors and
// messages follow the rules of HttpClient. Thread-safe.
class BlockingClient {
public:
    // kInvalidArgument: the CA file cannot be read. `clock` must outlive the client.
    static Result<std::unique_ptr<BlockingClient>> make(ClientOptions options, const Clock& clock);

    // No call may be running.
    ~BlockingClient();
    BlockingClient(const BlockingClient&) = delete;
    BlockingClient& operator=(const BlockingClient&) = delete;

    // Returns when the response is complete or has failed, or soon after `stop` is requested
    // (kCancelled). After a stop nothing is sent. The sink's on_response and on_data run on this
    // thread and may block; on_done is not called. While connections_max calls run, further calls
    // wait in order; that time counts towards total_timeout. Throws only std::bad_alloc.
    Status call(HttpRequest request, HttpSink sink, const std::stop_token& stop);

private:
    struct Lane;  // one connection and its curl handles; one call at a time uses it

    struct EndTurn {
        void operator()(BlockingClient* client) const;
    };

    using Turn = std::unique_ptr<BlockingClient, EndTurn>;  // permission to run; counted in in_use_

    BlockingClient(ClientOptions options, const Clock& clock);

    Result<Turn> take_turn(const CurlCall& call, const std::stop_token& stop);
    void wake_next();
    std::unique_ptr<Lane> take_lane();
    void keep(std::unique_ptr<Lane> lane);
    Status transfer(Lane& lane, CurlCall& call, const std::stop_token& stop);

    const ClientOptions options_;
    const Clock* clock_;
    std::mutex mutex_;
    // Under mutex_.
    std::vector<std::unique_ptr<Lane>> idle_;           // the lane used last is at the end
    std::deque<std::condition_variable_any*> waiting_;  // calls without a turn, in order
    std::size_t in_use_ = 0;
};

}  // namespace stoker::http
