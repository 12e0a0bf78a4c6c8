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

// Where the fillers of one Dataset have to be, and what is said of them (docs/adr/0012). Pure.
namespace stoker::control {

// A filler stays this long after the last pod of a guest on its node has ended: the next guest
// finds it at work.
inline constexpr Duration kFillerGrace = std::chrono::seconds{60};

// RFC 3339: since when nobody needs the filler. On its Job, written once, so that another operator
// knows it.
inline constexpr std::string_view kIdleSinceAnnotation = "stoker.dev/idle-since";

// Places of pods that have not ended, of guests: jobs of other namespaces that read the Dataset.
// `users`: the jobs that read it, guests or not.
std::set<FillerPlace> guest_places(const Dataset& dataset, const std::vector<JobUse>& users);

struct FillerView {
    Dataset dataset;
    std::map<FillerPlace, std::string> needed;  // to the digest of the filler that belongs there
    std::vector<Job> jobs;                      // with the Dataset's kFillerLabel
};

struct FillerJob {
    std::string name;
    std::string uid;

    auto operator<=>(const FillerJob&) const = default;
};

// To set kIdleSinceAnnotation.
struct FillerMark {
    FillerJob job;
    WallTime since;

    bool operator==(const FillerMark&) const = default;
};

// To let a Job run until so long after its start.
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
    std::optional<Duration> look_again;  // plan again then, even if nothing changes

    bool operator==(const FillerPlan&) const = default;
};

// One filler at each place where one is needed. A Job that has ended, or that was built from
// another spec or another operator's settings, is removed and made anew when it is gone. One that
// nobody needs is removed when kFillerGrace is over, or when it is needed again: the next guests
// read a listing of the origin that is not older than they are. Jobs that the Dataset does not own
// are left alone.
FillerPlan plan_fillers(const FillerView& view, WallTime now);

// A filler that is needed.
struct FillerState {
    FillerPlace place;
    bool ready = false;
    bool refused = false;  // by the API server or in its name: somebody has to act
    std::string words;     // what is awaited, without a subject; empty: it is ready

    bool operator==(const FillerState&) const = default;
};

// Sentences by place: why the API server refused a filler's Job, or why the Job has no pods or the
// pod does not begin.
using FillerDiagnoses = std::map<FillerPlace, std::string>;

// The state of every filler that is needed. `pods`: with the Dataset's kFillerLabel.
std::vector<FillerState> find_filler_states(
    const FillerView& view,
    const std::vector<Pod>& pods,
    const FillerDiagnoses& refusals,
    const FillerDiagnoses& troubles);

// A condition of a Dataset.
inline constexpr std::string_view kFillersReady = "FillersReady";

// The condition kFillersReady; none while no filler is needed.
std::optional<Condition> judge_fillers(const std::vector<FillerState>& states);

}  // namespace stoker::control
