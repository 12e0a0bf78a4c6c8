#pragma once

#include <cstdint>
#include <map>

#include "sidecar/core/job_progress.h"
#include "sidecar/service/session.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// Totals that the trainers of this pod told of one dataset, and where their samples came from.
struct JobTotals : control::TrainerReport {
    local::Counted counted;  // as the leader has looked at them
    Bytes fallback_bytes{};  // of fallback_samples

    bool operator==(const JobTotals&) const = default;
};

// Sums up what the sessions of our trainers tell, whoever leads: the operator hears of a job from
// its own sidecar. Belongs to the loop's thread.
class TrainerTotals final : public ReadingListener {
public:
    void attach(const Session& session);
    void detach(const Session& session);

    // A frame of a session that reads a revision of `sample_count` samples; 0: it was not told yet.
    // True: the frame is done with. False: the leader has to hear it, too.
    bool on_frame(Session& session, const Frame& frame, std::uint64_t sample_count);

    void on_drawn(const Session& session, const local::Drawn& drawn) override;
    void on_counted(const local::Counted& counted) override;

    // The operator asks our trainers to measure; another id than before is another measurement.
    void set_probe(const local::Probe& probe);

    [[nodiscard]] JobTotals sum() const;

private:
    void add(const local::Report& report);
    void note_progress(
        const Session& session, const local::Message& message, std::uint64_t sample_count);
    [[nodiscard]] control::ProbeReport probed() const;

    JobTotals job_;
    JobProgress progress_;
    local::Probe probe_;
    std::map<ConnectionId, local::Probed> probed_;  // of the present probe; also of those who left
};

}  // namespace stoker::sidecar
