#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/strong.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

using ConnectionId = Strong<std::uint64_t, struct ConnectionIdTag>;

// What became of one sample of a demand fetch.
enum class FetchOutcome : std::uint8_t {
    kReady,         // its residency word is set
    kReadAtOrigin,  // the client reads it itself: no room here
    kOriginError,   // the origin does not give it; the message says why
};

// The answer to one demand fetch.
struct FetchReply {
    ConnectionId connection{};
    std::uint64_t request_id = 0;
    std::vector<FetchOutcome> outcomes;  // in the order of the request's ids
    std::string message;                 // of the first kOriginError

    bool operator==(const FetchReply&) const = default;
};

// Who waits for which sample, and which samples each connection holds: those that an answered fetch
// of it made ready, until its next fetch or its end. Knows nothing of bytes or classes. Not
// thread-safe.
class DemandBook {
public:
    // Names a position in a pending request.
    struct Place {
        std::uint64_t ticket = 0;
        std::uint32_t index = 0;
    };

    void connect(ConnectionId connection);

    struct Leftovers {
        std::vector<SampleIndex> held;       // once for each hold
        std::vector<SampleIndex> abandoned;  // waited for by nobody else any more
    };

    // Forgets the connection, its requests and its holds, and says what that frees.
    Leftovers disconnect(ConnectionId connection);

    // Takes what the answered fetches of the connection hold, sorted, once for each hold; it holds
    // nothing afterwards.
    std::vector<SampleIndex> take_held(ConnectionId connection);

    // Gives up one hold of the connection on the sample. False: it has none.
    bool release(ConnectionId connection, SampleIndex sample);

    // Opens a request of `count` samples, all unresolved; gives its ticket.
    std::uint64_t open(ConnectionId connection, std::uint64_t request_id, std::size_t count);

    void wait(SampleIndex sample, Place place);

    // Resolves one place at once, without waiting. A ready sample is held by the request.
    void settle(SampleIndex sample, Place place, FetchOutcome outcome, std::string_view message);

    // Resolves every place that waits for the sample; gives how many.
    std::uint32_t settle_all(
        SampleIndex sample, FetchOutcome outcome, std::string_view message = {});

    [[nodiscard]] bool is_waited_for(SampleIndex sample) const { return waiters_.contains(sample); }

    // The answers that became complete since the last call.
    std::vector<FetchReply> take_replies() { return std::exchange(replies_, {}); }

    [[nodiscard]] std::size_t pending_requests() const { return requests_.size(); }

    // Requests of one connection that are not answered yet.
    [[nodiscard]] std::size_t pending_requests(ConnectionId connection) const;

private:
    struct Request {
        FetchReply reply;
        std::vector<SampleIndex> ready;
        std::size_t unresolved = 0;
    };

    struct Connection {
        std::vector<SampleIndex> held;  // sorted
        std::vector<std::uint64_t> tickets;
    };

    void finish(std::uint64_t ticket);

    std::map<ConnectionId, Connection> connections_;
    std::unordered_map<std::uint64_t, Request> requests_;  // by ticket
    std::unordered_map<SampleIndex, std::vector<Place>> waiters_;
    std::vector<FetchReply> replies_;
    std::uint64_t next_ticket_ = 1;
};

}  // namespace stoker::sidecar
