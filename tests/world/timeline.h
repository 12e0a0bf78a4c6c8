#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"

namespace stoker::world {

// One node at one time. Bytes are those of its ready leader; zero without one.
struct Moment {
    Duration at{};  // since the beginning
    std::string node;
    std::string leader;      // empty: nobody leads
    std::uint64_t lead = 0;  // number of this period of leadership on the node, from 1; 0: none yet
    bool is_ready = false;   // the leader has the listing
    Bytes grant{};
    Bytes resident{};
    Bytes window{};
    Bytes fetched{};     // from the origin, since this leader began to lead
    Bytes from_peers{};  // the same from peers
};

// The history of a run: leaders, grants, residents, fetches and faults.
class Timeline {
public:
    // `place`: the node's name, or "origin".
    void on_fault(Duration at, std::string place, std::string_view fault);

    // The operator has sent another group of peers, with these members.
    void on_group(Duration at, std::string_view members);

    // A line for each change of a leader, grant or group, and each fault, in the order of time.
    [[nodiscard]] std::string text() const;

    // One self-contained page with a chart for each node.
    [[nodiscard]] std::string html(const std::string& title) const;

    std::vector<Moment> moments;  // in the order of time

private:
    struct FaultEvent {
        Duration at{};
        std::string place;
        std::string fault;
    };

    [[nodiscard]] std::vector<std::string> nodes() const;
    [[nodiscard]] std::string chart(const std::string& node, double width_s) const;

    std::vector<FaultEvent> faults_;
    std::vector<std::pair<Duration, std::string>> groups_;
};

}  // namespace stoker::world
