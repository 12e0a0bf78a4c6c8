#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "sidecar/core/demand_book.h"
#include "sidecar/core/holdings.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

// One connection, as the limits see it.
struct Client {
    ConnectionId connection{};
    std::optional<StreamId> stream{};
    std::uint64_t sidecar = 0;  // id of the sidecar whose trainer this is
    Party party = kOwnParty;
};

// Limits what the clients of one leader hold: positions of plans, samples of unanswered fetches,
// and streams of guests. Each sidecar has a share; guests have a limit of their own. Pure; not
// thread-safe.
class ClientRooms {
public:
    static constexpr std::ptrdiff_t kGuestStreamsMax = 64;  // per party

    ClientRooms();

    // Sets the dataset's size; call it before the first plan.
    void set_sample_count(std::uint64_t samples);

    // Whether the client's stream may read by a plan or a contract. False: its party has too many
    // streams.
    bool take_stream(const Client& client);

    // Reserves room for a plan that replaces the stream's previous one; false: the previous one
    // stays.
    bool take_plan(const Client& client, std::uint64_t positions);

    // Reserves room for the samples of one fetch until its answer.
    bool take_fetch(const Client& client, std::uint64_t samples);
    void give_fetch(const Client& client, std::uint64_t samples);

    // Releases what the connection has reserved; `last`: no other connection has its stream.
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
    std::map<StreamId, Party> guest_streams_;  // streams that may have plans
    std::map<ConnectionId, std::uint64_t> pending_samples_;
};

}  // namespace stoker::sidecar
