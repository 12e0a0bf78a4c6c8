#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/allocation/allocation_plan.h"
#include "operator/core/allocation/allocation_view.h"

namespace stoker::control {

// Bytes of one dataset on one node, as its sidecars and the Datasets' statuses tell them now.
struct ObservedResidency {
    std::string pool;
    std::string node;
    std::string dataset_uid;
    std::string ns;        // of the dataset
    Bytes resident{};      // told by whoever leads there, else what a status remembers
    bool opening = false;  // the leader there has not counted yet what is on the disk
    // The grant that the leader there enforces; none: no sidecar there has reported. Unlimited: it
    // got no grant since it began, keeps what is there and adds nothing.
    std::optional<Bytes> granted;
    bool live = false;     // a pod whose sidecar may hold a grant is there
    bool reached = false;  // a sidecar there is attached: it gets grants at once
    Bytes promised{};      // by an operator before us, as far as statuses tell
    WallTime last_used{};  // of the dataset

    bool operator==(const ObservedResidency&) const = default;
};

// What the sidecar there may fill by what it says; zero where nobody has spoken, or where it has
// been granted nothing since it began.
Bytes grant_in_force(const ObservedResidency& word);

// What an operator has granted and what the sidecars may believe to be granted: the planner's
// holdings. Two things make it safe, whatever is lost or late:
//  - A grant counts until its sidecar has said that another one is in force, and gets no other one
//    until then: of two on their way nobody could tell which one a report answers.
//  - An operator that begins to lead is not settled: until every sidecar that was there before it
//    has spoken, or until the last grant of an operator before it must have run out, nobody grows
//    beyond what is there; and a sidecar that has not spoken is granted nothing, because less than
//    it has would throw its bytes away.
// Pure: time comes in. One owner, not thread-safe.
class GrantBook {
public:
    // Beyond their validity: clocks that drift, messages on their way.
    static constexpr Duration kSlack = std::chrono::seconds{10};

    // `valid`: how long a grant holds. Operators before us had the same.
    explicit GrantBook(Duration valid)
        : valid_(valid) {}

    // All places of which anything is known; each once. The first call begins the leadership.
    void observe(const std::vector<ObservedResidency>& words, TimePoint now);

    // Holdings of the observed places, by node and dataset.
    [[nodiscard]] std::vector<Holding> holdings() const;

    // Whether anybody may grow.
    [[nodiscard]] bool is_settled(TimePoint now) const;

    // Sidecars that were there before us and have not spoken.
    [[nodiscard]] std::size_t unheard() const { return unheard_.size(); }

    // Notes the grants of a plan that was made from holdings(); returns those that may be sent.
    std::vector<Grant> take(const AllocationPlan& plan);

private:
    struct Place {
        std::string node;
        std::string dataset_uid;
        std::string pool;

        auto operator<=>(const Place&) const = default;
    };

    struct Entry {
        ObservedResidency word;
        std::optional<Bytes> sent;
        Bytes believed{};   // the most that the sidecar may hold for granted
        Bytes resident{};   // last told, while it is there
        bool open = false;  // it has counted what is on the disk, and may fill up
    };

    static Place place_of(const ObservedResidency& word);
    void note(const ObservedResidency& word, Entry& entry);

    Duration valid_;
    std::optional<TimePoint> began_at_;
    std::map<Place, Entry> entries_;
    std::set<Place> unheard_;
};

}  // namespace stoker::control
