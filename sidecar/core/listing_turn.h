#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace stoker::sidecar {

// Decides which node of a group lists the origin: the members have one order, by the hash of
// (dataset, node), which all compute alike. A node waits for the first member before it that is
// alive. The first one alive asks all others whether they have the manifest or list already, takes
// it from there, or lists. So "waits for" follows the order and has no cycle.
//
// No wait is without end: kGroupMax for the group; a member is passed over if it gives no answer for
// kAnswerMax, does not begin for kIdleMax or makes no progress for kStillMax; after kAllMax in all we
// list ourselves. Pure, not thread-safe.
class ListingTurn {
public:
    // As long as the operator holds a new attempt's pin until its group is complete
    // (operator/core/lifecycle/pin_hold.h).
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
        std::vector<std::string> asked;  // kWait: keep asking these; kTake: take it from the first
    };

    ListingTurn(std::string_view dataset_uid, std::string self, TimePoint now);

    // Replaces the group. Forgets the reports of a member whose `generation` has changed: its node
    // has a new leader.
    void set_members(const std::vector<Member>& members);

    // `progress`: any number that changes while the member makes progress.
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
        std::optional<TimePoint> asked_at;  // first time
        TimePoint moved_at{};               // `said` or `progress` changed
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
