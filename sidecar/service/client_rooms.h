#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "sidecar/core/demand_book.h"
#include "sidecar/core/holdings.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

// One connection as the limits see it.
struct Client {
    ConnectionId connection{};
    std::optional<StreamId> stream{};
    std::uint64_t sidecar = 0;  // whose trainer it is
    Party party = kOwnParty;
};

// Bounds on what the clients of one leader hold: positions of plans, samples of fetches without an
// answer, and streams of guests. Each sidecar has a part of the room; guests have a room
// of their own. Pure; not thread-safe.
class ClientRooms {
public:
    static constexpr std::ptrdiff_t kGuestStreamsMax = 64;  // of one party

    ClientRooms();

    // The dataset that plans are about; before the first one.
    void set_sample_count(std::uint64_t samples);

    // May the client's stream read by a plan or a contract? False: its party has too many.
    bool take_stream(const Client& client);

    // Room for the plan of the client's stream, instead of the one before, which stays on false.
    bool take_plan(const Client& client, std::uint64_t positions);

    // Room for the samples of one fetch, until it is answered.
    bool take_fetch(const Client& client, std::uint64_t samples);
    void give_fetch(const Client& client, std::uint64_t samples);

    // The connection has ended; `last`: no other one has its stream.
    void leave(const Client& client, bool last);

private:
    struct Rooms {
        Holdings plan{0, 0};     // positions of plans
        Holdings pending{0, 0};  // samples of fetches without an answer
    };

    struct PlanRoom {
        std::uint64_t sidecar = 0;
        Party party = kOwnParty;
        std::uint64_t positions = 0;
    };

    [[nodiscard]] Rooms& rooms(Party party) { return party == kOwnParty ? own_ : guests_; }

    Rooms own_;
    Rooms guests_;
    std::map<StreamId, PlanRoom> plans_;
    std::map<StreamId, Party> guest_streams_;  // that have or may have plans
    std::map<ConnectionId, std::uint64_t> pending_samples_;
};

}  // namespace stoker::sidecar
