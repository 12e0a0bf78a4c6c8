#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/api/sidecar_report.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/profile/job_profile.h"
#include "operator/core/profile/probe_schedule.h"
#include "operator/core/profile/profiler.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/report_index.h"

namespace stoker::control {

// Profiles of all running jobs, built from their sidecars' reports. Drops a job that has ended and
// resets one that starts another attempt. Kept in memory only: a new operator needs three of
// JobProfiler's windows per job. Pure; not thread-safe.
class ProfileBook {
public:
    // See ProbeSchedule.
    explicit ProfileBook(std::uint64_t first_probe_id)
        : next_probe_id_(first_probe_id) {}

    // `plan`: the last plan, for the granted bytes.
    void update(const ClusterView& cluster, const AllocationPlan& plan, const Moment& now);

    // Profiles of all jobs that have one.
    [[nodiscard]] std::map<ObjectKey, JobProfile> profiles() const;

    // Probes to run now, by job.
    [[nodiscard]] const std::map<ObjectKey, Probe>& probes() const { return probes_; }

    // Number of out-of-range reports of all jobs since the start.
    [[nodiscard]] std::uint64_t refused() const;

private:
    struct Entry {
        std::int64_t attempt = 0;
        JobProfiler profiler;
        ProbeSchedule probes;
    };

    struct Id {
        ObjectKey key;
        std::string uid;

        auto operator<=>(const Id&) const = default;
    };

    Entry& entry_of(const JobUse& use);
    void update_job(
        const JobUse& use,
        const ReportIndex& reports,
        const AllocationPlan& plan,
        const Moment& now);
    void probe(
        Entry& entry,
        const JobUse& use,
        const std::vector<SidecarReport>& ranks,
        const Moment& now);

    std::uint64_t next_probe_id_;
    std::map<Id, Entry> entries_;
    std::map<ObjectKey, Probe> probes_;
    std::uint64_t refused_before_ = 0;  // of dropped jobs
};

}  // namespace stoker::control
