#include "sidecar/core/demand_book.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

void DemandBook::connect(ConnectionId connection, Party party) {
    const auto [added, is_new] = connections_.try_emplace(connection);
    STOKER_CHECK(is_new, "the connection is connected already");
    added->second.party = party;
    ++parties_[party].connections;
}

std::vector<Party> DemandBook::parties() const {
    const auto names = std::views::keys(parties_);
    return {names.begin(), names.end()};
}

void DemandBook::queue(Party party, SampleIndex sample) {
    PartyDemands& demands = parties_.at(party);
    if (demands.known.insert(sample).second) {
        demands.queue.push_back(sample);
    }
}

void DemandBook::queue_again(SampleIndex sample) {
    for (const Party party : parties_waiting(sample)) {
        queue(party, sample);
    }
}

bool DemandBook::are_queues_empty() const {
    return std::ranges::all_of(
        parties_, [](const auto& entry) { return entry.second.queue.empty(); });
}

void DemandBook::pop_queue(Party party) {
    PartyDemands& demands = parties_.at(party);
    demands.known.erase(demands.queue.front());
    demands.queue.pop_front();
}

void DemandBook::park(Party party) {
    PartyDemands& demands = parties_.at(party);
    demands.parked.push_back(demands.queue.front());
    demands.queue.pop_front();
}

void DemandBook::unpark(Party party) {
    PartyDemands& demands = parties_.at(party);
    const auto parked = std::exchange(demands.parked, {});
    demands.queue.insert(demands.queue.begin(), parked.begin(), parked.end());
}

DemandBook::Leftovers DemandBook::disconnect(ConnectionId id) {
    const auto connection = connections_.extract(id);
    STOKER_CHECK(!connection.empty(), "the connection is not connected");
    if (const auto party = parties_.find(connection.mapped().party);
        --party->second.connections == 0) {
        parties_.erase(party);
    }
    Leftovers left{std::move(connection.mapped().ready.held), {}};
    const auto& tickets = connection.mapped().tickets;
    for (const std::uint64_t ticket : tickets) {
        const auto request = requests_.extract(ticket);
        const auto& held = request.mapped().ready.held;
        left.held.insert(left.held.end(), held.begin(), held.end());
    }
    if (tickets.empty()) {
        return left;
    }
    for (auto& [sample, places] : waiters_) {
        std::erase_if(places, [&tickets](const Place& place) {
            return std::ranges::find(tickets, place.ticket) != tickets.end();
        });
        if (places.empty()) {
            left.abandoned.push_back(sample);
        }
    }
    std::erase_if(waiters_, [](const auto& entry) { return entry.second.empty(); });
    std::ranges::sort(left.abandoned);
    return left;
}

DemandBook::Ready DemandBook::take_ready(ConnectionId connection) {
    return std::exchange(connections_.at(connection).ready, {});
}

bool DemandBook::release(ConnectionId connection, SampleIndex sample) {
    auto& held = connections_.at(connection).ready.held;
    const auto found = std::ranges::lower_bound(held, sample);
    if (found == held.end() || *found != sample) {
        return false;
    }
    held.erase(found);
    return true;
}

std::uint32_t DemandBook::let_go(SampleIndex sample) {
    std::uint32_t ended = 0;
    const auto end_holds = [sample, &ended](Ready& ready) {
        const auto count = static_cast<std::uint32_t>(std::erase(ready.held, sample));
        ready.seen.insert(std::ranges::upper_bound(ready.seen, sample), count, sample);
        ended += count;
    };
    for (auto& [id, connection] : connections_) {
        each_ready(connection, requests_, end_holds);
    }
    return ended;
}

std::uint64_t DemandBook::open(
    ConnectionId connection, std::uint64_t request_id, std::size_t count) {
    STOKER_CHECK(count > 0, "a request must have at least one sample");
    const std::uint64_t ticket = next_ticket_++;
    Request& request = requests_[ticket];
    request.reply.connection = connection;
    request.reply.request_id = request_id;
    request.reply.outcomes.resize(count, FetchOutcome::kReadAtOrigin);
    request.unresolved = count;
    connections_.at(connection).tickets.push_back(ticket);
    return ticket;
}

void DemandBook::wait(SampleIndex sample, Place place) {
    waiters_[sample].push_back(place);
}

void DemandBook::settle(
    SampleIndex sample, Place place, FetchOutcome outcome, std::string_view message, bool held) {
    Request& request = requests_.at(place.ticket);
    request.reply.outcomes[place.index] = outcome;
    if (outcome == FetchOutcome::kReady) {
        (held ? request.ready.held : request.ready.seen).push_back(sample);
    } else if (outcome == FetchOutcome::kOriginError && request.reply.message.empty()) {
        request.reply.message = message;
    }
    if (--request.unresolved == 0) {
        finish(place.ticket);
    }
}

std::uint32_t DemandBook::settle_party(SampleIndex sample, Party party, FetchOutcome outcome) {
    const auto waiting = waiters_.find(sample);
    if (waiting == waiters_.end()) {
        return 0;
    }
    const auto theirs = std::ranges::stable_partition(
        waiting->second, [this, party](Place place) { return party_of(place) != party; });
    const std::vector<Place> settled{theirs.begin(), theirs.end()};
    waiting->second.erase(theirs.begin(), theirs.end());
    if (waiting->second.empty()) {
        waiters_.erase(waiting);
    }
    for (const Place& place : settled) {
        settle(sample, place, outcome, {});
    }
    return static_cast<std::uint32_t>(settled.size());
}

std::uint32_t DemandBook::settle_all(
    SampleIndex sample, FetchOutcome outcome, std::string_view message) {
    const auto waiting = waiters_.extract(sample);
    if (waiting.empty()) {
        return 0;
    }
    for (const Place& place : waiting.mapped()) {
        settle(sample, place, outcome, message);
    }
    return static_cast<std::uint32_t>(waiting.mapped().size());
}

std::uint32_t DemandBook::settle_ready(SampleIndex sample, Party charged) {
    const auto waiting = waiters_.extract(sample);
    if (waiting.empty()) {
        return 0;
    }
    std::uint32_t holds = 0;
    for (const Place& place : waiting.mapped()) {
        const bool held = may_hold(party_of(place), charged);
        holds += held ? 1 : 0;
        settle(sample, place, FetchOutcome::kReady, {}, held);
    }
    return holds;
}

std::vector<Party> DemandBook::parties_waiting(SampleIndex sample) const {
    std::vector<Party> parties;
    if (const auto waiting = waiters_.find(sample); waiting != waiters_.end()) {
        for (const Place& place : waiting->second) {
            parties.push_back(party_of(place));
        }
    }
    std::ranges::sort(parties);
    parties.erase(std::ranges::unique(parties).begin(), parties.end());
    return parties;
}

bool DemandBook::is_held_by_others(SampleIndex sample) const {
    return std::ranges::any_of(connections_, [this, sample](const auto& entry) {
        const Connection& connection = entry.second;
        return connection.party != kOwnParty &&
               (std::ranges::binary_search(connection.ready.held, sample) ||
                std::ranges::any_of(connection.tickets, [this, sample](std::uint64_t ticket) {
                    return std::ranges::count(requests_.at(ticket).ready.held, sample) > 0;
                }));
    });
}

std::vector<SampleIndex> DemandBook::held_by(Party party) const {
    std::vector<SampleIndex> samples;
    for (const auto& [id, connection] : connections_) {
        if (connection.party == party) {
            each_ready(connection, requests_, [&samples](const Ready& ready) {
                std::ranges::copy(ready.held, std::back_inserter(samples));
            });
        }
    }
    std::ranges::sort(samples);
    samples.erase(std::ranges::unique(samples).begin(), samples.end());
    return samples;
}

std::size_t DemandBook::pending_requests(ConnectionId connection) const {
    const auto found = connections_.find(connection);
    return found == connections_.end() ? 0 : found->second.tickets.size();
}

void DemandBook::finish(std::uint64_t ticket) {
    auto request = requests_.extract(ticket);
    Connection& connection = connections_.at(request.mapped().reply.connection);
    std::erase(connection.tickets, ticket);
    for (const auto list : {&Ready::held, &Ready::seen}) {
        auto& all = connection.ready.*list;
        std::ranges::copy(request.mapped().ready.*list, std::back_inserter(all));
        std::ranges::sort(all);
    }
    replies_.push_back(std::move(request.mapped().reply));
}

}  // namespace stoker::sidecar
