#include "sidecar/service/client_rooms.h"

#include <algorithm>

#include "proto/local/protocol.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kPlannedMin = 16U << 20U;  // positions, about 8 bytes each
constexpr std::uint64_t kPendingSamplesMax = 1U << 20U;

}  // namespace

ClientRooms::ClientRooms()
    : own_{Holdings{0, 0}, Holdings{kPendingSamplesMax, kPendingSamplesMax / 2}},
      guests_{Holdings{0, 0}, Holdings{kPendingSamplesMax / 2, kPendingSamplesMax / 4}} {}

void ClientRooms::set_sample_count(std::uint64_t samples) {
    const std::uint64_t positions = std::max(kPlannedMin, 2 * samples);
    own_.plan = Holdings{positions, positions / 4 * 3};
    const std::uint64_t one_plan = samples + 2 * local::kAheadSamplesMax;
    guests_.plan =
        Holdings{std::max(kPlannedMin / 2, one_plan), std::max(kPlannedMin / 4, one_plan)};
}

// Limits a guest's streams with plans, because every event visits all of them.
bool ClientRooms::take_stream(const Client& client) {
    if (client.party == kOwnParty || guest_streams_.contains(*client.stream)) {
        return true;
    }
    const auto own = std::ranges::count_if(
        guest_streams_, [&client](const auto& entry) { return entry.second == client.party; });
    if (own >= kGuestStreamsMax) {
        return false;
    }
    guest_streams_.emplace(*client.stream, client.party);
    return true;
}

bool ClientRooms::take_plan(const Client& client, std::uint64_t positions) {
    PlanRoom& plan = plans_[*client.stream];
    rooms(plan.party).plan.give(plan.sidecar, plan.positions);
    if (!rooms(client.party).plan.take(client.sidecar, positions)) {
        rooms(plan.party).plan.take(plan.sidecar, plan.positions);
        return false;
    }
    plan = {client.sidecar, client.party, positions};
    return true;
}

bool ClientRooms::take_fetch(const Client& client, std::uint64_t samples) {
    if (!rooms(client.party).pending.take(client.sidecar, samples)) {
        return false;
    }
    pending_samples_[client.connection] += samples;
    return true;
}

void ClientRooms::give_fetch(const Client& client, std::uint64_t samples) {
    pending_samples_[client.connection] -= samples;
    rooms(client.party).pending.give(client.sidecar, samples);
}

void ClientRooms::leave(const Client& client, bool last) {
    if (const auto pending = pending_samples_.extract(client.connection)) {
        rooms(client.party).pending.give(client.sidecar, pending.mapped());
    }
    if (!client.stream || !last) {
        return;
    }
    if (const auto plan = plans_.extract(*client.stream)) {
        rooms(plan.mapped().party).plan.give(plan.mapped().sidecar, plan.mapped().positions);
    }
    guest_streams_.erase(*client.stream);
}

}  // namespace stoker::sidecar
