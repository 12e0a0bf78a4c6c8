#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/strong.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

using ConnectionId = Strong<std::uint64_t, struct ConnectionIdTag>;

// Result for one sample of a demand fetch.
enum class FetchOutcome : std::uint8_t {
    kReady,         // its residency word is set: the client can read it on the node
    kReadAtOrigin,  // not cached: the client reads it from the origin
    kOriginError,   // the origin failed; `message` has the reason
};

// The answer to one demand fetch.
struct FetchReply {
    ConnectionId connection{};
    std::uint64_t request_id = 0;
    std::vector<FetchOutcome> outcomes;  // in the order of the request's ids
    std::string message;                 // error message of the first kOriginError

    bool operator==(const FetchReply&) const = default;
};

// Demand fetches and holds: the connections of each Party, the connections that wait for each
// sample, and the samples that each connection holds. A connection holds the samples of its last
// answered fetch until its next fetch or its end. Each party has its own queue of samples to fetch,
// so that no party waits behind another one. Knows neither sizes nor SegmentClass. Not thread-safe.
class DemandBook {
public:
    // Identifies a position in a pending request.
    struct Place {
        std::uint64_t ticket = 0;
        std::uint32_t index = 0;
    };

    void connect(ConnectionId connection, Party party = kOwnParty);

    [[nodiscard]] Party party_of(ConnectionId connection) const {
        return connections_.at(connection).party;
    }

    // Whether the party has a connection.
    [[nodiscard]] bool has(Party party) const { return parties_.contains(party); }

    // Parties with a connection.
    [[nodiscard]] std::size_t party_count() const { return parties_.size(); }

    [[nodiscard]] std::vector<Party> parties() const;

    // Appends the sample to the party's queue unless it is already there. The party must have a
    // connection. When the sample is dequeued, it may be stored already or no longer demanded.
    void queue(Party party, SampleIndex sample);

    // Queues the sample for each party that waits for it.
    void queue_again(SampleIndex sample);

    [[nodiscard]] bool is_queue_empty(Party party) const {
        return parties_.at(party).queue.empty();
    }

    [[nodiscard]] bool are_queues_empty() const;

    // The oldest sample of the party's queue. Precondition: the queue is not empty.
    [[nodiscard]] SampleIndex queue_front(Party party) const {
        return parties_.at(party).queue.front();
    }

    void pop_queue(Party party);

    // Takes the queue's first sample out until unpark(): those behind it do not wait for it.
    void park(Party party);

    // Puts the party's parked samples back before all others, the oldest first.
    void unpark(Party party);

    struct Leftovers {
        std::vector<SampleIndex> held;       // one entry per hold
        std::vector<SampleIndex> abandoned;  // demanded by no other connection
    };

    // Removes the connection, its requests and its holds; returns the samples that this frees.
    Leftovers disconnect(ConnectionId connection);

    // Samples that answered fetches reported as ready: sorted, one entry per fetch.
    struct Ready {
        std::vector<SampleIndex> held;
        std::vector<SampleIndex> seen;  // not held
    };

    // Removes and returns the ready samples of the connection's answered fetches; it holds nothing
    // afterwards.
    Ready take_ready(ConnectionId connection);

    // Releases one hold of the connection on the sample. False: the connection has none.
    bool release(ConnectionId connection, SampleIndex sample);

    // Ends all holds on the sample, which stays ready for the former holders; returns their number.
    std::uint32_t let_go(SampleIndex sample);

    // Opens a request of `count` samples, all unresolved; returns its ticket.
    std::uint64_t open(ConnectionId connection, std::uint64_t request_id, std::size_t count);

    void wait(SampleIndex sample, Place place);

    // Resolves one position of a request at once, without waiting. The request holds a ready sample
    // unless `held` is false.
    void settle(
        SampleIndex sample,
        Place place,
        FetchOutcome outcome,
        std::string_view message,
        bool held = true);

    // Resolves all positions that wait for the sample, which is now stored and charged to
    // `charged`. Returns the number of new holds: only the own party and `charged` get holds.
    std::uint32_t settle_ready(SampleIndex sample, Party charged);

    // Parties that wait for the sample, without duplicates.
    [[nodiscard]] std::vector<Party> parties_waiting(SampleIndex sample) const;

    // Whether a connection of another party than the own one holds the sample.
    [[nodiscard]] bool is_held_by_others(SampleIndex sample) const;

    // Samples that connections of the party hold: sorted, without duplicates.
    [[nodiscard]] std::vector<SampleIndex> held_by(Party party) const;

    // Whether an answered fetch of `party` may hold a sample that is charged to `charged`.
    [[nodiscard]] static bool may_hold(Party party, Party charged) {
        return party == kOwnParty || party == charged;
    }

    // Resolves the party's positions that wait for the sample; returns their number.
    std::uint32_t settle_party(SampleIndex sample, Party party, FetchOutcome outcome);

    // Resolves all positions that wait for the sample; returns their number.
    std::uint32_t settle_all(
        SampleIndex sample, FetchOutcome outcome, std::string_view message = {});

    // Replies completed since the last call.
    std::vector<FetchReply> take_replies() { return std::exchange(replies_, {}); }

    // Unanswered requests of one connection.
    [[nodiscard]] std::size_t pending_requests(ConnectionId connection) const;

private:
    struct Request {
        FetchReply reply;
        Ready ready;
        std::size_t unresolved = 0;
    };

    struct Connection {
        Party party = kOwnParty;
        Ready ready;
        std::vector<std::uint64_t> tickets;
    };

    struct PartyDemands {
        std::uint32_t connections = 0;
        std::deque<SampleIndex> queue;          // oldest first
        std::vector<SampleIndex> parked;        // oldest first
        std::unordered_set<SampleIndex> known;  // samples in `queue` or `parked`
    };

    [[nodiscard]] Party party_of(Place place) const {
        return party_of(requests_.at(place.ticket).reply.connection);
    }

    // Calls `visit` with the samples that the connection's answered fetches reported as ready, then
    // with the samples that are ready so far in each of its open `requests`.
    static void each_ready(auto& connection, auto& requests, const auto& visit) {
        visit(connection.ready);
        for (const std::uint64_t ticket : connection.tickets) {
            visit(requests.at(ticket).ready);
        }
    }

    void finish(std::uint64_t ticket);

    std::map<ConnectionId, Connection> connections_;
    std::map<Party, PartyDemands> parties_;                // only parties that have a connection
    std::unordered_map<std::uint64_t, Request> requests_;  // by ticket
    std::unordered_map<SampleIndex, std::vector<Place>> waiters_;
    std::vector<FetchReply> replies_;
    std::uint64_t next_ticket_ = 1;
};

}  // namespace stoker::sidecar
