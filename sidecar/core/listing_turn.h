#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Decides which node of a group lists the origin. The members have an order, by the hash of
// (dataset, node), which all nodes compute alike. A node waits for the first live member before it.
// The first live member asks all others whether they have the manifest or are listing; it takes the
// manifest from such a member, or else lists. So "waits for" follows the order and has no cycle.
//
// Every wait ends: the wait for the group after kGroupMax; a member is passed over if it does not
// answer for kAnswerMax, does not start for kIdleMax or makes no progress for kStillMax; after
// kAllMax in all this node lists. Pure, not thread-safe.
class ListingTurn {
public:
    // The operator holds a new attempt's pin back at most this long, until the attempt's group is
    // complete (operator/core/lifecycle/pin_hold.h).
    static constexpr Duration kGroupMax = std::chrono::seconds{8};
    static constexpr Duration kAnswerMax = std::chrono::seconds{3};
    static constexpr Duration kIdleMax = std::chrono::seconds{12};
    static constexpr Duration kStillMax = std::chrono::seconds{30};
    static constexpr Duration kAllMax = std::chrono::minutes{10};

    struct Member {
        std::string node;
        std::uint64_t generation = 0;
    };

    // A member's report about its manifest.
    enum class Said : std::uint8_t { kNothing, kIdle, kListing, kTaking, kHas, kFailed };

    enum class Action : std::uint8_t { kWait, kTake, kList };

    struct Step {
        Action action = Action::kWait;
        std::vector<std::string> asked;  // kWait: keep asking these; kTake: take it from [0]
    };

    ListingTurn(std::string_view dataset_uid, std::string self, TimePoint now);

    // Replaces the group. Forgets the reports of a member whose `generation` has changed: its node
    // has a new leader.
    void set_members(const std::vector<Member>& members);

    // Records a member's report. `progress`: a number that changes while the member makes progress.
    void note(const std::string& node, Said said, std::uint64_t progress, TimePoint now);

    // The action to take now. Call it after each change, and every fraction of a second.
    Step step(TimePoint now);

    // Whether a group that contains us is known.
    [[nodiscard]] bool has_group() const { return has_group_; }

private:
    struct Peer {
        std::uint64_t generation = 0;
        Said said = Said::kNothing;
        std::uint64_t progress = 0;
        std::optional<TimePoint> asked_at;  // when the member was first asked
        TimePoint moved_at{};               // when `said` or `progress` last changed
    };

    struct Rank {
        std::uint64_t hash = 0;
        std::string node;

        auto operator<=>(const Rank&) const = default;
    };

    [[nodiscard]] Rank rank_of(const std::string& node) const;
    bool is_hopeful(Peer& peer, TimePoint now) const;
    Step ask_before_listing(TimePoint now);

    const std::uint64_t dataset_hash_;
    const Rank self_;
    const TimePoint begun_at_;
    bool has_group_ = false;
    std::map<Rank, Peer, std::greater<>> peers_;  // the others, highest hash first
};

}  // namespace stoker::sidecar
