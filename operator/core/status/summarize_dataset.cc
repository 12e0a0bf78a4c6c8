#include "operator/core/status/summarize_dataset.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/spec/packing.h"
#include "operator/core/spec/validate.h"
#include "operator/core/status/judge_peers.h"
#include "operator/core/view/totals.h"
#include "operator/core/view/training_job_view.h"

namespace stoker::control {

namespace {

using std::chrono::seconds;

const JobUse* user_of(const DatasetView& view, const SidecarReport& report) {
    const auto found = std::ranges::find_if(view.users, [&](const JobUse& user) {
        return user.job->meta.uid == report.training_job_uid &&
               user.job->meta.name == report.training_job;
    });
    return found == view.users.end() ? nullptr : &*found;
}

std::optional<WallTime> running_since(const JobUse& user) {
    const std::vector<Condition>& conditions = user.job->status.conditions;
    return is_true(conditions, "Running")
               ? std::optional(find_condition(conditions, "Running")->last_transition)
               : std::nullopt;
}

// The users' reports, reduced to this dataset.
std::vector<SidecarReport> reports_on(const DatasetView& view) {
    std::vector<SidecarReport> result;
    for (SidecarReport report : view.reports) {
        std::erase_if(report.datasets, [&](const DatasetReport& dataset) {
            return dataset.dataset_uid != view.dataset.meta.uid;
        });
        if (user_of(view, report) != nullptr && !report.datasets.empty()) {
            result.push_back(std::move(report));
        }
    }
    return result;
}

using Place = std::pair<std::string, std::string>;  // pool, node

// The dataset's bytes in each node directory, by the last status and by the planner's Holdings, for
// directories without a fresh report. If a Holding has more bytes than the status, estimates the
// number of samples from their share of the dataset's size. `opening`: directories whose leader
// still counts its bytes; for these the status stays unchanged.
std::map<Place, DatasetPlacement> remembered_bytes(
    const DatasetView& view, const std::set<Place>& opening) {
    std::map<Place, DatasetPlacement> result;
    const DatasetStatus& status = view.dataset.status;
    for (const DatasetPlacement& before : status.placements) {
        result.emplace(Place{before.pool, before.node}, before);
    }
    const auto total = static_cast<double>(status.total_bytes.value_or(0));
    for (const Holding& holding : view.holdings) {
        const Place place{holding.pool, holding.node};
        if (holding.dataset_uid != view.dataset.meta.uid || opening.contains(place)) {
            continue;
        }
        DatasetPlacement& placement = result[place];
        const std::int64_t bytes = count_of(holding.resident);
        if (bytes > placement.bytes) {
            const double share = total > 0 ? std::min(static_cast<double>(bytes) / total, 1.0) : 0;
            const auto samples = static_cast<double>(status.samples.value_or(0)) * share;
            placement = {holding.pool, holding.node, bytes, static_cast<std::int64_t>(samples)};
        }
    }
    std::erase_if(result, [&](const auto& entry) { return view.swept.contains(entry.first); });
    return result;
}

std::vector<DatasetPlacement> place_bytes(
    const DatasetView& view, const std::vector<SidecarReport>& reports, const Moment& now) {
    std::map<Place, DatasetPlacement> by_place;
    std::set<Place> opening;
    for (const SidecarReport& report : reports) {
        for (const DatasetReport& dataset : report.datasets) {
            if (!dataset.leader || !is_fresh(report, now)) {
                continue;
            }
            const std::string& pool = user_of(view, report)->pool.name;
            if (!has_counted(dataset)) {
                opening.insert({pool, report.node});
                continue;
            }
            DatasetPlacement& placement = by_place[{pool, report.node}];
            if (count_of(dataset.resident_bytes) >= placement.bytes) {
                placement = {
                    pool,
                    report.node,
                    count_of(dataset.resident_bytes),
                    count_of(dataset.resident_samples)};
            }
        }
    }
    by_place.merge(remembered_bytes(view, opening));
    std::vector<DatasetPlacement> result;
    for (const auto& [place, placement] : by_place) {
        if (placement.bytes > 0 && view.nodes.contains(placement.node)) {
            result.push_back(placement);
        }
    }
    std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
        return a.bytes > b.bytes;
    });
    result.resize(std::min(result.size(), kPlacementCountMax));
    return result;
}

bool is_silent(const DatasetView& view, const Totals& sum, const Moment& now) {
    if (sum.fresh_reports > 0) {
        return false;
    }
    std::optional<WallTime> since = std::max(sum.newest, view.dataset.status.sampled_at);
    bool runs = false;
    for (const JobUse& user : view.users) {
        runs |= running_since(user).has_value();
        since = std::max(since, running_since(user));
    }
    return runs && now.wall - *since > kReportAgeMax;
}

Condition listed(const DatasetTotals& told) {
    std::string message = fmt::format("{} samples, {}.", told.samples, to_string(told.total));
    if (!told.error.empty()) {
        message += " The last fetch failed: " + told.error;
    }
    if (const std::string troubles = tell_troubles(told); !troubles.empty()) {
        message += " " + troubles;
    }
    return holds("Listed", std::move(message));
}

Condition judge(const DatasetView& view, const DatasetTotals* told, bool silent) {
    if (const std::vector<FieldError> errors = validate(view.dataset); !errors.empty()) {
        return fails("Invalid", to_string(errors));
    }
    if (view.packing && view.packing->status.packed_digest.empty()) {
        return fails("NotPacked", "The condition Packed says what the packing waits for.");
    }
    if (silent) {
        return unknown(
            "NodesSilent", "No sidecar that uses the dataset has reported for 60 seconds.");
    }
    switch (told == nullptr ? ManifestState::kUnknown : told->state) {
        case ManifestState::kReady:
            return listed(*told);
        case ManifestState::kFailed:
            return fails("OriginFailed", told->error);
        case ManifestState::kListing:
            return unknown("Listing", fmt::format("{} objects so far.", told->objects_listed));
        case ManifestState::kUnknown:
            break;
    }
    const Condition* before = find_condition(view.dataset.status.conditions, "Ready");
    // Keeps the last condition, except Listing when no job that lists is left.
    if (before != nullptr && before->reason != "NodesSilent" && before->reason != "Invalid" &&
        before->reason != "NotPacked" && (before->reason != "Listing" || !view.users.empty())) {
        return *before;
    }
    return unknown("NotListed", "The origin is listed when the first job uses the dataset.");
}

void measure(
    const DatasetView& view,
    const std::vector<SidecarReport>& reports,
    const Totals& sum,
    const DatasetTotals* told,
    const Moment& now,
    DatasetStatus& status) {
    if (told != nullptr && told->state == ManifestState::kReady) {
        status.total_bytes = count_of(told->total);
        status.samples = count_of(told->samples);
        status.index_revision = told->revision;
    }
    status.placements = place_bytes(view, reports, now);
    status.cached_bytes = 0;
    status.cached_samples = 0;
    for (const DatasetPlacement& placement : status.placements) {
        status.cached_bytes = add_saturated(status.cached_bytes, placement.bytes);
        status.cached_samples = add_saturated(status.cached_samples, placement.samples);
    }
    status.nodes = static_cast<std::int64_t>(status.placements.size());
    status.cached_percentage = 0;
    if (status.total_bytes.value_or(0) > 0 && status.nodes > 0) {
        status.cached_percentage = std::min<std::int64_t>(
            multiply_saturated(status.cached_bytes / status.nodes, 100) / *status.total_bytes, 100);
    }
    if (sum.fresh_reports > 0) {
        const auto percent = hit_percent(sum.cache_bytes, sum.origin_bytes);
        status.hit_ratio = percent ? ratio_text(*percent) : "";
        status.columns.hit = percent ? fmt::format("{}%", *percent) : "";
    }
    if (sum.newest) {
        status.sampled_at = std::max(
            status.sampled_at, std::optional<WallTime>(std::chrono::floor<seconds>(*sum.newest)));
    }
    status.jobs = std::ranges::count(view.users, false, &JobUse::filler);
}

void print_columns(DatasetStatus& status) {
    const auto print = [](std::int64_t bytes) { return to_string(bytes_of(bytes)); };
    status.columns.size = status.total_bytes ? print(*status.total_bytes) : "";
    status.columns.cached = status.total_bytes ? print(status.cached_bytes) : "";
    status.columns.cached_percentage =
        status.total_bytes ? fmt::format("{}%", status.cached_percentage) : "";
}

// Reports fillers while guests read the Dataset.
void set_fillers(const DatasetView& view, const Moment& now, DatasetStatus& status) {
    if (std::optional<Condition> fillers = judge_fillers(view.fillers)) {
        set_condition(
            status.conditions,
            std::string{kFillersReady},
            *std::move(fillers),
            view.dataset.meta,
            now);
    } else {
        drop_condition(status.conditions, kFillersReady);
    }
}

// Reports the packing of a Dataset that asks for one.
void set_packing(const DatasetView& view, const Moment& now, DatasetStatus& status) {
    const std::string type{kPacked};
    if (!view.packing) {
        status.packing.reset();
        drop_condition(status.conditions, type);
        return;
    }
    status.packing = view.packing->status;
    set_condition(status.conditions, type, view.packing->packed, view.dataset.meta, now);
}

// Reports peers while nodes share samples.
void set_peers(
    const DatasetView& view,
    const std::vector<SidecarReport>& reports,
    const Moment& now,
    DatasetStatus& status) {
    const std::string& uid = view.dataset.meta.uid;
    const std::string type{kPeersReachable};
    status.peers = measure_peers(uid, view.peers, reports);
    if (std::optional<Condition> peers = judge_peers(uid, view.peers, reports, now)) {
        set_condition(status.conditions, type, *std::move(peers), view.dataset.meta, now);
    } else {
        drop_condition(status.conditions, type);
    }
}

}  // namespace

DatasetStatus summarize_dataset(const DatasetView& view, const Moment& now) {
    DatasetStatus status = view.dataset.status;
    const std::vector<SidecarReport> reports = reports_on(view);
    const Totals sum = total_of(reports, now);
    const auto found = sum.datasets.find(view.dataset.meta.uid);
    const DatasetTotals* told = found == sum.datasets.end() ? nullptr : &found->second;
    const Condition ready = judge(view, told, is_silent(view, sum, now));
    status.observed_generation = view.dataset.meta.generation;
    measure(view, reports, sum, told, now, status);
    print_columns(status);
    set_condition(status.conditions, "Ready", ready, view.dataset.meta, now);
    set_condition(
        status.conditions,
        "Indexed",
        status.total_bytes ? holds("Listed", "The list of samples is complete.")
                           : fails("NotListed", "There is no list of samples yet."),
        view.dataset.meta,
        now);
    set_fillers(view, now, status);
    set_packing(view, now, status);
    set_peers(view, reports, now, status);
    return status;
}

}  // namespace stoker::control
