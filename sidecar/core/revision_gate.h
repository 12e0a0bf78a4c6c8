#pragma once

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

// Whether the trainers of this pod may read a revision of a dataset: all ranks of an attempt read
// the one that the operator pinned. A rank that listed another one lists again, once; if that does
// not help, the attempt cannot go on.
//
// Nobody waits for a dead operator: without a pin trainers begin after kPatience, and a pin that
// says otherwise afterwards still counts. Pure, not thread-safe.
class RevisionGate {
public:
    static constexpr Duration kPatience = std::chrono::seconds{10};

    enum class Verdict : std::uint8_t {
        kWait,       // for the pin, until waits_until()
        kGo,         // trainers may read it
        kListAgain,  // told once
        kChanged,    // it is not the pinned one, and listing again did not help or cannot be done
    };

    // `is_pinned`: an operator will pin the revision. Otherwise every revision may be read.
    explicit RevisionGate(bool is_pinned)
        : is_pinned_(is_pinned) {}

    // The operator's word; the last one counts.
    void pin(domain::RevisionId revision) { pinned_ = revision; }

    // `can_list`: nobody reads `revision` here yet, so that another listing may replace it. kGo is
    // remembered: what trainers were given stays theirs while no pin says otherwise.
    Verdict judge(domain::RevisionId revision, bool can_list, TimePoint now);

    // The end of the wait that the last kWait told.
    [[nodiscard]] TimePoint waits_until() const { return waits_until_.value_or(TimePoint{}); }

    // Trainers read something.
    [[nodiscard]] bool has_given() const { return given_.has_value(); }

    // The last verdict was kChanged.
    [[nodiscard]] bool has_changed() const { return has_changed_; }

private:
    [[nodiscard]] Verdict decide(domain::RevisionId revision, bool can_list, TimePoint now);

    bool is_pinned_;
    bool listed_again_ = false;
    bool has_changed_ = false;
    std::optional<domain::RevisionId> pinned_;
    std::optional<domain::RevisionId> given_;  // to our trainers
    std::optional<TimePoint> waits_until_;
};

}  // namespace stoker::sidecar
