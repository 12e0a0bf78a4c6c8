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

// What is wanted, and by whom: the connections of each party, those that wait for each sample, and
// the samples that each connection holds: those that an answered fetch of it made ready, until its
// next fetch or its end. Each party has a queue of what it demands and is to be fetched, so that
// nobody waits behind what another party asks for. Knows nothing of bytes or classes. Not
// thread-safe.
class DemandBook {
public:
    // Names a position in a pending request.
    struct Place {
        std::uint64_t ticket = 0;
        std::uint32_t index = 0;
    };

    void connect(ConnectionId connection, Party party = kOwnParty);

    [[nodiscard]] Party party_of(ConnectionId connection) const {
        return connections_.at(connection).party;
    }

    // Has the party a connection?
    [[nodiscard]] bool has(Party party) const { return parties_.contains(party); }

    // Parties with a connection.
    [[nodiscard]] std::size_t party_count() const { return parties_.size(); }

    [[nodiscard]] std::vector<Party> parties() const;

    // Puts the sample last into the queue of the party, which has a connection, unless it stands
    // there. It may be on the node, or be demanded no more, when its turn comes.
    void queue(Party party, SampleIndex sample);

    [[nodiscard]] bool is_queue_empty(Party party) const {
        return parties_.at(party).queue.empty();
    }

    [[nodiscard]] bool are_queues_empty() const;

    // Precondition: the queue is not empty.
    [[nodiscard]] SampleIndex queue_front(Party party) const {
        return parties_.at(party).queue.front();
    }

    void pop_queue(Party party);

    struct Leftovers {
        std::vector<SampleIndex> held;       // once for each hold
        std::vector<SampleIndex> abandoned;  // nobody else waits for them
    };

    // Forgets the connection, its requests and its holds, and says what that frees.
    Leftovers disconnect(ConnectionId connection);

    // Samples that fetches were told to be ready, sorted, once for each time.
    struct Ready {
        std::vector<SampleIndex> held;
        std::vector<SampleIndex> seen;  // not held
    };

    // Takes those of the answered fetches of the connection; it holds nothing afterwards.
    Ready take_ready(ConnectionId connection);

    // Gives up one hold of the connection on the sample. False: it has none.
    bool release(ConnectionId connection, SampleIndex sample);

    // Opens a request of `count` samples, all unresolved; gives its ticket.
    std::uint64_t open(ConnectionId connection, std::uint64_t request_id, std::size_t count);

    void wait(SampleIndex sample, Place place);

    // Resolves one place at once, without waiting. A ready sample is held by the request, unless
    // it is not `held`.
    void settle(
        SampleIndex sample,
        Place place,
        FetchOutcome outcome,
        std::string_view message,
        bool held = true);

    // The sample, which is charged to this party, is there: resolves every place that waits for it.
    // Gives how many hold it: those of the own party and of the one that it is charged to.
    std::uint32_t settle_ready(SampleIndex sample, Party charged);

    // Parties that wait for the sample, each once.
    [[nodiscard]] std::vector<Party> parties_waiting(SampleIndex sample) const;

    // May a party's answered fetch keep a sample on the node that is charged to another one?
    [[nodiscard]] static bool may_hold(Party party, Party charged) {
        return party == kOwnParty || party == charged;
    }

    // Resolves every place that waits for the sample; gives how many.
    std::uint32_t settle_all(
        SampleIndex sample, FetchOutcome outcome, std::string_view message = {});

    // The answers that became complete since the last call.
    std::vector<FetchReply> take_replies() { return std::exchange(replies_, {}); }

    // Requests of one connection that are not answered yet.
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
        std::unordered_set<SampleIndex> known;  // the same
    };

    [[nodiscard]] Party party_of(Place place) const {
        return party_of(requests_.at(place.ticket).reply.connection);
    }

    void finish(std::uint64_t ticket);

    std::map<ConnectionId, Connection> connections_;
    std::map<Party, PartyDemands> parties_;                // each has a connection
    std::unordered_map<std::uint64_t, Request> requests_;  // by ticket
    std::unordered_map<SampleIndex, std::vector<Place>> waiters_;
    std::vector<FetchReply> replies_;
    std::uint64_t next_ticket_ = 1;
};

}  // namespace stoker::sidecar
