#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/core/allocation/reclaim_book.h"
#include "operator/core/view/grant_book.h"

// Actors of allocation_sim_test.cc: sidecars, operators, and the messages between them.
namespace stoker::control {

inline constexpr const char* kPool = "p";

inline constexpr int kGrantTicks = 20;
// Longest overlap with a replaced leader; shorter than GrantBook's allowance.
inline constexpr int kOverlapTicks = 7;
inline constexpr int kReportTicks = 12;  // an older report is not fresh
inline constexpr int kNobody = -1;

using Place = std::pair<std::string, std::string>;  // a node directory: node, Dataset's uid

inline TimePoint at(int tick) {
    return TimePoint{std::chrono::seconds{tick}};
}

struct Sidecar {
    Bytes resident{};
    Bytes granted = Bytes::unlimited();  // unlimited: no grant since its start
    int granted_until = 0;
    int opens_at = 0;       // before this tick it reports no bytes, keeps them and adds none
    int leader = kNobody;   // operator that it is attached to
    int cut_until = 0;      // disconnected until this tick
    bool stubborn = false;  // does not shrink
};

struct Message {
    int due = 0;
    Place place;
    Bytes granted{};
    Bytes resident{};
    bool opening = false;
};

inline Message report_of(const Place& place, const Sidecar& sidecar, int now, int delay) {
    const bool opening = now < sidecar.opens_at;
    const Bytes counted = opening ? Bytes::zero() : sidecar.resident;
    return {now + delay, place, sidecar.granted, counted, opening};
}

inline void begin_anew(Sidecar& sidecar, int opens_at) {
    sidecar.granted = Bytes::unlimited();
    sidecar.granted_until = 0;
    sidecar.opens_at = opens_at;
}

struct Told {
    Bytes resident{};
    Bytes granted{};
    int at = 0;
    bool opening = false;
};

// The API server's record of a node directory, for any operator that leads.
struct Remembered {
    Bytes granted{};   // largest grant that its sidecar may hold
    Bytes resident{};  // last reported
};

// One operator: its input and its records.
struct Operator {
    bool leads = false;
    int replaced_at = 0;
    GrantBook book{std::chrono::seconds{kGrantTicks}};
    ReclaimBook reclaims;
    std::map<Place, Told> told;
    std::deque<Message> reports;  // in flight
    std::deque<Message> grants;
};

// Removes the messages in flight on a stream that has ended.
template <class Predicate>
void lose_messages(Operator& it, Predicate is_lost) {
    std::erase_if(it.grants, is_lost);
    std::erase_if(it.reports, is_lost);
}

// Bytes that each node directory may have before any operator sends another grant.
inline std::map<Place, Bytes> possible(
    const std::map<Place, Sidecar>& sidecars, const std::array<Operator, 2>& operators, int now) {
    std::map<Place, Bytes> result;
    for (const auto& [place, sidecar] : sidecars) {
        const Bytes valid = now < sidecar.granted_until ? sidecar.granted : Bytes::zero();
        result[place] = std::max(sidecar.resident, valid);
    }
    for (const Operator& it : operators) {
        for (const Message& grant : it.grants) {
            result[grant.place] = std::max(result[grant.place], grant.granted);
        }
    }
    return result;
}

}  // namespace stoker::control
