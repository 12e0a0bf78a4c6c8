#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "sidecar/attached/fetch_pool.h"
#include "sidecar/s3/client_socket.h"
#include "sidecar/s3/forward_bound.h"
#include "sidecar/s3/part_window.h"
#include "sidecar/s3/route.h"
#include "sidecar/s3/segment_files.h"
#include "sidecar/s3/verify_signature.h"

namespace stoker::s3 {

struct TimeLimits {
    Duration head = std::chrono::seconds{10};   // from a request's first byte to its head's end
    Duration idle = std::chrono::seconds{75};   // between two requests
    Duration stall = std::chrono::seconds{60};  // until the client takes more of a response
    Duration linger = std::chrono::seconds{2};  // for a client that still sends a refused body
};

// Parts of the endpoint that connections use. They outlive the connections.
struct ConnectionParts {
    const LoopbackKey& key;
    const Places& places;
    const Clock& clock;
    SegmentFiles& segments;
    TimeLimits limits{};
};

// One client's connection: a state machine that never waits. Pipelined requests are answered one
// after the other. An object of blocks is sent block by block; while one block is sent, the next
// ones are requested. Used by one event thread.
class Connection {
public:
    // What the owner must do next.
    enum class Next : std::uint8_t {
        kRead,     // call advance() when the socket is readable
        kWrite,    // call advance() when the socket is writable
        kFetch,    // wait for the current part: call on_fetched()
        kForward,  // forward the request: call take_forward()
        kClose,
    };

    // A part of the response that the owner must request from the FetchPool.
    struct Fetch {
        attached::CachedDataset* dataset;
        std::shared_ptr<attached::DatasetFiles> files;
        domain::SampleId id;
        std::uint64_t range_bytes;
        std::size_t index;  // pass it to on_fetched()
    };

    struct Forward {
        ClientSocket socket;
        std::string buffered;
        S3Call call;
        std::string request_id;
        ForwardBound bound;
    };

    Connection(ClientSocket socket, std::string buffered, const ConnectionParts& parts);

    [[nodiscard]] int fd() const { return socket_.fd(); }

    // Reads, answers and writes as far as the socket allows.
    Next advance();

    // Returns the parts to request from the FetchPool. Call it after each advance(), whatever
    // advance() returned.
    std::vector<Fetch> take_fetches() { return std::exchange(fetches_, {}); }

    // Delivers the answer for a part of take_fetches(); call advance() afterwards.
    void on_fetched(std::size_t index, attached::FetchPool::Answer answer);

    // Moves the connection's state out; afterwards this object can only be destroyed.
    Forward take_forward();

    // Whether the connection is idle: it waits for a request of which no byte has arrived.
    [[nodiscard]] bool is_idle() const { return state_ == State::kReading && in_.empty(); }

    // Whether the connection waits for on_fetched(). Meanwhile its socket only reports a hang-up.
    [[nodiscard]] bool is_fetching() const { return state_ == State::kFetching; }

    // Serves no further request after the current one.
    void end_soon() { is_ending_ = true; }

    [[nodiscard]] TimePoint deadline() const { return deadline_; }

private:
    enum class State : std::uint8_t { kReading, kFetching, kForwarding, kWriting, kLingering };

    Next read_request();
    bool receive();
    void begin(RequestHead head);
    void serve(Route route);
    void serve_object();
    void begin_part();
    void ask_ahead();
    void ask_behind();
    void send_part(attached::FetchPool::Answer answer);
    void fall_back();
    void count_part(const attached::ObjectParts::Part& part, std::string_view source);
    void send_text(std::string text);
    void refuse(const S3Error& error);
    Next write_some();
    bool write_head();
    bool write_body();
    Next finish_response();
    Next linger();

    ClientSocket socket_;
    const ConnectionParts& parts_;
    State state_ = State::kReading;
    std::string in_;
    S3Call call_;
    std::string request_id_;
    bool keep_alive_ = true;
    bool is_ending_ = false;
    Route route_;
    PartWindow window_;  // parts of the object that is being sent
    std::vector<Fetch> fetches_;
    ForwardBound bound_;
    // The response: a text, followed by bytes of a file, or of memory if there is no file.
    std::string out_;
    std::size_t out_sent_ = 0;
    SegmentFiles::File file_;
    std::int64_t file_offset_ = 0;
    client::SampleView sample_;      // the sample of the current part
    std::uint64_t body_offset_ = 0;  // offset in sample_ of the next byte to send
    std::uint64_t body_left_ = 0;
    TimePoint deadline_{};
};

}  // namespace stoker::s3
