#include "operator/core/lifecycle/pin_revisions.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "common/domain/parse_revision.h"
#include "operator/core/lifecycle/attempts.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/totals.h"

namespace stoker::control {

namespace {

constexpr const char* kOriginChanged = "OriginChanged";
constexpr const char* kSampleChanged = "SampleChanged";

// One sidecar's report on one dataset.
struct Word {
    const SidecarReport* sidecar = nullptr;
    const DatasetReport* dataset = nullptr;
};

// The lowest rank's fresh report for which `holds`; the order of the reports does not matter.
template <class Predicate>
Word find_word(const std::vector<SidecarReport>& reports, const Moment& now, Predicate holds) {
    Word result;
    const auto is_lower = [&result](const SidecarReport& report) {
        return result.sidecar == nullptr || std::tie(report.rank, report.pod) <
                                                std::tie(result.sidecar->rank, result.sidecar->pod);
    };
    for (const SidecarReport& report : reports) {
        for (const DatasetReport& dataset : report.datasets) {
            if (is_fresh(report, now) && is_lower(report) && holds(dataset)) {
                result = {&report, &dataset};
            }
        }
    }
    return result;
}

const JobDatasetStatus* find_status(
    const std::vector<JobDatasetStatus>& datasets, const std::string& name) {
    const auto found = std::ranges::find(datasets, name, &JobDatasetStatus::name);
    return found == datasets.end() ? nullptr : &*found;
}

std::string say_where(const OriginChange& change) {
    if (change.key.empty()) {
        return "where the listings begin to differ is not known";
    }
    if (change.keys == 1) {
        return fmt::format("the listings begin to differ at key '{}'", change.key);
    }
    return fmt::format(
        "the listings begin to differ among the {} keys from '{}' on", change.keys, change.key);
}

// nullopt: no changed object was found in this attempt.
std::optional<std::string> find_changed_sample(
    const std::vector<JobDatasetStatus>& datasets, std::int64_t attempt) {
    const auto found = std::ranges::find_if(datasets, [attempt](const JobDatasetStatus& dataset) {
        return dataset.revision_attempt == attempt && !dataset.changed_key.empty();
    });
    if (found == datasets.end()) {
        return std::nullopt;
    }
    return fmt::format(
        "Object '{}' of dataset {} is not as it was listed. The attempt goes on with what was "
        "listed; the next attempt lists anew.",
        found->changed_key,
        found->name);
}

bool is_false(const Condition* condition) {
    return condition != nullptr && condition->status == ConditionStatus::kFalse;
}

// The uid under which the sidecar mounts the dataset; "": it does not mount it.
std::string mounted_uid(const SidecarReport& report, const std::string& name) {
    const auto found = std::ranges::find(report.mounts, name, &DatasetMount::name);
    return found == report.mounts.end() ? "" : found->dataset_uid;
}

// Uids, other than the dataset's present one, under which the attempt's sidecars mount the dataset.
std::set<std::string> replaced_uids(
    const std::vector<SidecarReport>& reports, const ResolvedDataset& dataset) {
    std::set<std::string> uids;
    for (const SidecarReport& report : reports) {
        uids.insert(mounted_uid(report, dataset.name));
    }
    uids.erase("");
    uids.erase(dataset.uid);
    return uids;
}

// Whether every dataset has a revision from this attempt.
bool all_told(
    const TrainingJobView& view,
    const std::vector<JobDatasetStatus>& datasets,
    std::int64_t attempt) {
    return std::ranges::all_of(view.datasets.datasets, [&](const ResolvedDataset& dataset) {
        const JobDatasetStatus* status = find_status(datasets, dataset.name);
        return status != nullptr && status->revision_attempt == attempt && attempt > 0;
    });
}

}  // namespace

void note_revision(
    const std::string& dataset_uid,
    std::int64_t attempt,
    const std::vector<SidecarReport>& reports,
    const Moment& now,
    JobDatasetStatus& status) {
    const auto is_ours = [&](const DatasetReport& dataset) {
        return dataset.dataset_uid == dataset_uid;
    };
    if (status.revision_attempt != attempt || status.revision.empty()) {
        const Word word = find_word(reports, now, [&](const DatasetReport& dataset) {
            return is_ours(dataset) && !dataset.read_revision.empty();
        });
        if (word.dataset == nullptr) {
            return;
        }
        status.revision = word.dataset->read_revision;
        status.revision_attempt = attempt;
        status.changed_key.clear();
    }
    const Word word = find_word(reports, now, [&](const DatasetReport& dataset) {
        return is_ours(dataset) && !dataset.changed_key.empty();
    });
    if (status.changed_key.empty() && word.dataset != nullptr) {
        status.changed_key = word.dataset->changed_key;
    }
}

void forget_revision(JobDatasetStatus& status) {
    status.revision_attempt = 0;
}

AttemptPins pins_of(const TrainingJobView& view, const TrainingJobStatus& status) {
    AttemptPins result;
    result.job_uid = view.job.meta.uid;
    result.pod_prefix = pod_prefix(view.job, status.attempt);
    const std::vector<SidecarReport> reports = reports_of_attempt(view, status.attempt);
    for (const ResolvedDataset& dataset : view.datasets.datasets) {
        const JobDatasetStatus* told = find_status(status.datasets, dataset.name);
        const auto revision =
            told == nullptr ? std::nullopt : domain::parse_revision(told->revision);
        if (!is_pinned(view.job, dataset) || !revision ||
            told->revision_attempt != status.attempt) {
            continue;
        }
        RevisionPin& pin = result.pins.emplace_back(RevisionPin{dataset.uid, *revision});
        for (const SidecarReport& report : reports) {
            for (const DatasetReport& listed : report.datasets) {
                if (listed.dataset_uid == dataset.uid && listed.read_revision == told->revision &&
                    !listed.marks.digests.empty()) {
                    pin.marks = listed.marks;
                }
            }
        }
        for (const std::string& uid : replaced_uids(reports, dataset)) {
            result.pins.push_back(RevisionPin{uid, *revision});
        }
    }
    return result;
}

std::optional<std::string> find_origin_change(
    const TrainingJobView& view, const std::vector<SidecarReport>& reports, const Moment& now) {
    const Word word = find_word(reports, now, [&](const DatasetReport& report) {
        return report.origin_change &&
               std::ranges::any_of(view.datasets.datasets, [&](const ResolvedDataset& dataset) {
                   return dataset.name == report.name && is_pinned(view.job, dataset);
               });
    });
    if (word.sidecar == nullptr) {
        return std::nullopt;
    }
    const JobDatasetStatus* status = find_status(view.job.status.datasets, word.dataset->name);
    return fmt::format(
        "{}: rank {} (pod {}) lists revision {} of dataset {}, the attempt reads revision {}; {}.",
        kOriginChanged,
        word.sidecar->rank,
        word.sidecar->pod,
        word.dataset->read_revision,
        word.dataset->name,
        status == nullptr ? "" : status->revision,
        say_where(*word.dataset->origin_change));
}

Condition judge_origin(
    const TrainingJobView& view,
    const Lifecycle& lifecycle,
    const std::vector<JobDatasetStatus>& datasets,
    const Moment& now) {
    const std::int64_t before = find_attempts(view).number;
    if (const auto change = find_origin_change(view, reports_of_attempt(view, before), now)) {
        return fails(kOriginChanged, fmt::format("Attempt {} was ended: {}", before, *change));
    }
    if (auto sample = find_changed_sample(datasets, lifecycle.status.attempt)) {
        return fails(kSampleChanged, *std::move(sample));
    }
    const Condition* told = find_condition(view.job.status.conditions, "OriginUnchanged");
    const bool is_told = all_told(view, datasets, lifecycle.status.attempt);
    const bool stands = is_final(lifecycle.state) || (is_false(told) && !is_told);
    if (told != nullptr && stands) {
        return *told;
    }
    if (is_told) {
        return holds(
            "Unchanged",
            "The attempt reads one revision of every dataset, and no object was found changed.");
    }
    return unknown("NotListed", "The attempt's ranks have not listed all data yet.");
}

}  // namespace stoker::control
