#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/dataset.h"
#include "operator/api/job.h"
#include "operator/api/pod.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/workload/build_filler.h"

// Plans the fillers of one Dataset and computes their condition (docs/adr/0012). Pure.
namespace stoker::control {

// A filler stays this long after the last guest's pod on its node has ended: the next guest can use
// it at once.
inline constexpr Duration kFillerGrace = std::chrono::seconds{60};

// A filler that is ready, but has not reported for so long, is replaced: it may hang.
inline constexpr Duration kFillerSilenceMax = std::chrono::minutes{5};

// RFC 3339 time since when no guest needs the filler. Stored on its Job, written once, so that
// another operator can read it.
inline constexpr std::string_view kIdleSinceAnnotation = "stoker.dev/idle-since";

// Places of guests' pods that have not ended; guests are jobs of other namespaces that read the
// Dataset. `users`: all jobs that read it.
std::set<FillerPlace> guest_places(const Dataset& dataset, const std::vector<JobUse>& users);

struct FillerView {
    Dataset dataset;
    std::map<FillerPlace, std::string> needed;  // value: digest of the filler that belongs there
    std::vector<Job> jobs;                      // all Jobs with the Dataset's kFillerLabel
    // Places whose ready fillers do not report, with the length of their silence.
    std::map<FillerPlace, Duration> silent{};
    // Places whose fillers must have listed the origin for this scheduled run of a DatasetWarmup.
    std::map<FillerPlace, WallTime> runs{};
};

// Whether a filler, or its pod, was made for that run or a later one. A time too far in the future
// for clock drift does not count as a later run.
bool is_made_for(const ObjectMeta& filler, WallTime run, WallTime now);

struct FillerJob {
    std::string name;
    std::string uid;

    auto operator<=>(const FillerJob&) const = default;
};

// Sets kIdleSinceAnnotation.
struct FillerMark {
    FillerJob job;
    WallTime since;

    bool operator==(const FillerMark&) const = default;
};

// Extends a Job's deadline to this long after its start.
struct FillerRenewal {
    FillerJob job;
    std::int64_t deadline_seconds = 0;

    bool operator==(const FillerRenewal&) const = default;
};

struct FillerPlan {
    std::vector<FillerPlace> create;
    std::vector<FillerJob> remove;
    std::vector<FillerMark> mark;
    std::vector<FillerRenewal> renew;
    std::optional<Duration> look_again;  // plan again after this time, even if nothing changes

    bool operator==(const FillerPlan&) const = default;
};

// Plans one filler for each place that needs one. A Job that has ended, or was built from another
// spec or other operator settings, or before the run that needs it, or is silent for
// kFillerSilenceMax, is removed, and created again once it is gone. An unneeded filler is removed
// when kFillerGrace is over, or when it is needed again: the next guests must read a listing of the
// origin that is no older than they are. Jobs of other owners are left alone.
FillerPlan plan_fillers(const FillerView& view, WallTime now);

// A filler that is needed.
struct FillerState {
    FillerPlace place;
    bool ready = false;
    bool refused = false;  // by the API server, or its name is taken: a person has to act
    std::string words;     // reason for waiting, without a subject; empty: ready

    bool operator==(const FillerState&) const = default;
};

// Sentences by place: why the API server refused a filler's Job, why the Job has no pods, or why
// the pod does not start.
using FillerDiagnoses = std::map<FillerPlace, std::string>;

// State of every needed filler. `pods`: with the Dataset's kFillerLabel.
std::vector<FillerState> find_filler_states(
    const FillerView& view,
    const std::vector<Pod>& pods,
    const FillerDiagnoses& refusals,
    const FillerDiagnoses& troubles);

// A condition of a Dataset.
inline constexpr std::string_view kFillersReady = "FillersReady";

// The condition kFillersReady; nullopt if no filler is needed.
std::optional<Condition> judge_fillers(const std::vector<FillerState>& states);

}  // namespace stoker::control
