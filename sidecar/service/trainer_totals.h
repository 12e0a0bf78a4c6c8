#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "sidecar/core/job_progress.h"
#include "sidecar/service/session.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// Totals reported by this pod's trainers for one dataset, and the sources of their samples.
struct JobTotals : control::TrainerReport {
    local::Counted counted;  // as counted by the leader
    Bytes fallback_bytes{};  // bytes of the fallback_samples

    bool operator==(const JobTotals&) const = default;
};

// Reads of this pod by one kind of access.
struct AccessTotals {
    std::uint64_t node_samples = 0;    // from the node directory, or fetched by the sidecar
    std::uint64_t origin_samples = 0;  // read from the origin by the program itself
    Bytes bytes{};
};

// Sums the reports of our trainers' sessions, whichever sidecar leads: the operator gets a job's
// totals from the job's own sidecars. Use it on the loop's thread.
class TrainerTotals final : public ReadingListener {
public:
    void attach(const Session& session);
    void detach(const Session& session);

    // Handles a frame of a session on a revision of `sample_count` samples; 0: not known yet. True:
    // no one else needs the frame. False: the leader needs it, too.
    bool on_frame(Session& session, const Frame& frame, std::uint64_t sample_count);

    void on_drawn(const Session& session, const local::Drawn& drawn) override;
    void on_counted(const local::Counted& counted) override;

    // Sets the operator's measurement request; a new id means a new measurement.
    void set_probe(const local::Probe& probe);

    [[nodiscard]] JobTotals sum() const;

    // Reads by the kind of access that a session's Hello announces: "files", "s3", or "sdk" for all
    // others. Contains only kinds that have reported reads.
    [[nodiscard]] const std::map<std::string_view, AccessTotals>& by_access() const {
        return by_access_;
    }

private:
    void add(const Session& session, const local::Report& report);
    void note_progress(
        const Session& session, const local::Message& message, std::uint64_t sample_count);
    [[nodiscard]] control::ProbeReport probed() const;

    JobTotals job_;
    std::map<std::string_view, AccessTotals> by_access_;
    JobProgress progress_;
    local::Probe probe_;
    std::map<ConnectionId, local::Probed>
        probed_;  // results of the current probe, including closed sessions
};

}  // namespace stoker::sidecar
