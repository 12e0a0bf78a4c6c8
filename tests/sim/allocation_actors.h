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
#include "operator/core/allocation/grant_book.h"
#include "operator/core/allocation/reclaim_book.h"

// Actors of allocation_sim_test.cc: sidecars, operators, and the messages between them.
namespace stoker::control {

inline constexpr const char* kPool = "p";

inline constexpr int kGrantTicks = 20;
// A leader that was replaced may go on so long: less than what GrantBook allows for.
inline constexpr int kOverlapTicks = 7;
inline constexpr int kReportTicks = 12;  // an older report is no word
inline constexpr int kNobody = -1;

using Place = std::pair<std::string, std::string>;  // node, uid

inline TimePoint at(int tick) {
    return TimePoint{std::chrono::seconds{tick}};
}

struct Sidecar {
    Bytes resident{};
    Bytes granted = Bytes::unlimited();  // until the first grant, which is not in force
    int granted_until = 0;
    int opens_at = 0;       // until then it tells of no bytes, keeps them and adds none
    int leader = kNobody;   // which operator it is attached to
    int cut_until = 0;      // reaches nobody
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

// What the API server remembers of a place, whoever leads.
struct Remembered {
    Bytes granted{};   // the most that its sidecar may believe
    Bytes resident{};  // as told last
};

// One operator: what it was told, and its books.
struct Operator {
    bool leads = false;
    int replaced_at = 0;
    GrantBook book{std::chrono::seconds{kGrantTicks}};
    ReclaimBook reclaims;
    std::map<Place, Told> told;
    std::deque<Message> reports;  // on their way
    std::deque<Message> grants;
};

// What was on its way on a stream that has ended.
template <class Predicate>
void lose_messages(Operator& it, Predicate is_lost) {
    std::erase_if(it.grants, is_lost);
    std::erase_if(it.reports, is_lost);
}

// What may be on each place before any operator speaks again.
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
