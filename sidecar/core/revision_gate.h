#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

// Whether this pod's trainers may read a revision of a dataset: all ranks of an attempt read the
// revision that the operator pinned. A rank whose listing has another revision lists again, once;
// if the revision still differs, the attempt cannot continue.
//
// A dead operator does not block trainers: without a pin they begin after kPatience, and a
// contradicting pin that arrives later still counts. Pure, not thread-safe.
class RevisionGate {
public:
    static constexpr Duration kPatience = std::chrono::seconds{10};

    enum class Verdict : std::uint8_t {
        kWait,       // wait for the pin, until waits_until()
        kGo,         // trainers may read the revision
        kListAgain,  // list the origin again; returned once
        kChanged,    // differs from the pinned one; listing again failed or is not allowed
    };

    // `is_pinned`: an operator will pin the revision. Otherwise every revision may be read.
    explicit RevisionGate(bool is_pinned)
        : is_pinned_(is_pinned) {}

    // Sets the pin of the operator; the last one counts.
    void pin(domain::RevisionId revision) { pinned_ = revision; }

    // `can_list`: no trainer reads `revision` here yet, so another listing may replace it. kGo is
    // remembered: trainers keep the revision they were given while no pin contradicts it.
    Verdict judge(domain::RevisionId revision, bool can_list, TimePoint now);

    // The caller has already waited for the operator this long; shortens kPatience by `waited`.
    void note_waited(Duration waited) { patience_ -= std::min(waited, patience_); }

    // The pin; nullopt: none yet.
    [[nodiscard]] const std::optional<domain::RevisionId>& pinned() const { return pinned_; }

    // When the wait of the last kWait ends.
    [[nodiscard]] TimePoint waits_until() const { return waits_until_.value_or(TimePoint{}); }

    // Whether trainers were given a revision.
    [[nodiscard]] bool has_given() const { return given_.has_value(); }

    // Whether the last verdict was kChanged.
    [[nodiscard]] bool has_changed() const { return has_changed_; }

private:
    [[nodiscard]] Verdict decide(domain::RevisionId revision, bool can_list, TimePoint now);

    bool is_pinned_;
    bool listed_again_ = false;
    bool has_changed_ = false;
    Duration patience_ = kPatience;
    std::optional<domain::RevisionId> pinned_;
    std::optional<domain::RevisionId> given_;  // the revision given to trainers
    std::optional<TimePoint> waits_until_;
};

}  // namespace stoker::sidecar
