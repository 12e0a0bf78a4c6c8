#include "operator/core/sweep/plan_packing.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/base/saturating.h"
#include "common/base/utf8.h"
#include "operator/api/pack_result.h"
#include "operator/core/spec/packing.h"
#include "operator/core/spec/validate.h"
#include "operator/core/workload/build_packing.h"

namespace stoker::control {

namespace {

constexpr std::size_t kWordsMax = 1024;

const Job* find_job(const PackingView& view) {
    const std::string name = packing_job_name(view.dataset);
    const auto found = std::ranges::find_if(view.jobs, [&](const Job& job) {
        return owns(view.dataset.meta, job.meta) && job.meta.name == name;
    });
    return found == view.jobs.end() ? nullptr : &*found;
}

// The last line of a log text.
std::string last_line(std::string_view text) {
    while (!text.empty() && text.back() == '\n') {
        text.remove_suffix(1);
    }
    return std::string{utf8_prefix(text.substr(text.rfind('\n') + 1), kWordsMax)};
}

// The Job's newest pod in the given final phase, or nullptr.
const Pod* find_pod(const PackingView& view, const Job& job, PodPhase phase) {
    const Pod* newest = nullptr;
    for (const Pod& pod : view.pods) {
        if (job_name_of(pod) == job.meta.name && pod.phase == phase &&
            (newest == nullptr || newest->meta.created_at <= pod.meta.created_at)) {
            newest = &pod;
        }
    }
    return newest;
}

// The last failed pod's own message; empty: nothing is known.
std::string tell_failure(const PackingView& view, const Job& job) {
    const Pod* pod = find_pod(view, job, PodPhase::kFailed);
    if (pod == nullptr) {
        return "";
    }
    const ContainerState& container = pod->trainer;
    const std::string words = last_line(container.message);
    if (container.reason == "OOMKilled") {
        return "the pod needs more memory than its limit (sidecar.packingResources of the chart)";
    }
    return words.empty() && !pod->disruption.empty() ? pod->disruption : words;
}

class Judge {
public:
    explicit Judge(const PackingView& view)
        : view_(view),
          status_(view.dataset.status.packing.value_or(DatasetPackingStatus{})) {}

    PackingOutcome take() {
        if (!is_packed(view_.dataset)) {
            status_.packed_digest.clear();
            status_.chunks = status_.samples = status_.bytes = 0;
        }
        Condition packed = judge();
        return {std::move(status_), std::move(packed)};
    }

private:
    Condition judge() {
        if (const std::vector<FieldError> errors = validate(view_.dataset); !errors.empty()) {
            return fails("Invalid", to_string(errors));
        }
        const Job* job = find_job(view_);
        if (job != nullptr) {
            observe(*job);
        }
        if (!status_.packed_digest.empty()) {
            return holds("Packed", tell_packed());
        }
        if (job != nullptr) {
            return judge_job(*job);
        }
        if (!view_.refusal.empty()) {
            return fails("Refused", fmt::format("The packing Job: {}", view_.refusal));
        }
        return fails(
            "Starting",
            view_.jobs.empty() ? "The packing Job is being created."
                               : "The packing Job of the last spec is being removed.");
    }

    void observe(const Job& job) {
        status_.job = job.meta.name;
        status_.failed_pods = job.failed;
        status_.start_time = job.start_time;
        status_.completion_time = job.end ? job.end->at : std::nullopt;
        if (job.end && job.end->succeeded) {
            status_.packed_digest = packing_digest(view_.dataset.spec);
            read_counts(job);
        }
    }

    // The pod's last state may arrive after the Job's end, and the pod may go before the Job.
    void read_counts(const Job& job) {
        const Pod* pod = find_pod(view_, job, PodPhase::kSucceeded);
        const auto result =
            parse_document<PackResult>(pod == nullptr ? std::string_view{} : pod->trainer.message);
        if (result) {
            status_.chunks = result->chunks;
            status_.samples = result->samples;
            status_.bytes = result->bytes;
        }
    }

    [[nodiscard]] std::string tell_packed() const {
        const std::string& place = view_.dataset.spec.sources.front().storage_uri;
        return status_.chunks == 0 ? fmt::format("The chunks are at {}.", place)
                                   : fmt::format(
                                         "{} samples ({}) in {} chunks are at {}.",
                                         status_.samples,
                                         to_string(bytes_of(status_.bytes)),
                                         status_.chunks,
                                         place);
    }

    [[nodiscard]] Condition judge_job(const Job& job) const {
        const std::string failure = tell_failure(view_, job);
        if (job.end) {
            return fails("Failed", tell_end(job, failure));
        }
        if (job.suspend) {
            return fails("Suspended", fmt::format("Somebody has suspended Job {}.", job.meta.name));
        }
        const std::string before =
            failure.empty() ? "" : fmt::format(" The last pod failed: {}.", failure);
        if (!view_.diagnosis.empty()) {
            return fails(
                "Starting", fmt::format("Job {}: {}{}", job.meta.name, view_.diagnosis, before));
        }
        const Pod* waiting = find_pod(view_, job, PodPhase::kPending);
        if (waiting != nullptr) {
            return fails("Starting", tell_waiting(*waiting) + before);
        }
        return fails(
            "Packing",
            fmt::format(
                "Job {} is packing {}; kubectl logs -f job/{} -n {} shows its progress.{}",
                job.meta.name,
                view_.dataset.spec.packing->from.storage_uri,
                job.meta.name,
                job.meta.ns,
                before));
    }

    // The pod that was running at the deadline is deleted, so a failed pod is an earlier one.
    static std::string tell_end(const Job& job, const std::string& failure) {
        const bool is_late = job.end->reason == "DeadlineExceeded";
        std::string words = failure;
        if (is_late || failure.empty()) {
            words = job.end->message;
        }
        return fmt::format(
            "Job {} has failed: {}.{} Nothing at the destination was overwritten. To try again, "
            "{}, "
            "or: kubectl delete job {} -n {}",
            job.meta.name,
            words,
            is_late && !failure.empty() ? " An earlier pod failed: " + failure + "." : "",
            is_late ? "raise spec.packing.activeDeadlineSeconds" : "change spec.packing",
            job.meta.name,
            job.meta.ns);
    }

    static std::string tell_waiting(const Pod& pod) {
        const ContainerState& container = pod.trainer;
        const std::string& words =
            pod.unschedulable_message.empty() ? container.message : pod.unschedulable_message;
        return fmt::format(
            "Pod {} starts{}{}{}{}.",
            pod.meta.name,
            container.waiting_reason.empty() ? "" : ": ",
            container.waiting_reason,
            words.empty() ? "" : ": ",
            last_line(words));
    }

    const PackingView& view_;
    DatasetPackingStatus status_;
};

}  // namespace

PackingPlan plan_packing(const PackingView& view) {
    const Dataset& dataset = view.dataset;
    const bool has_packing = dataset.spec.packing && validate(dataset).empty();
    const std::string name = has_packing ? packing_job_name(dataset) : "";
    PackingPlan plan;
    plan.create = has_packing && !is_packed(dataset) && !dataset.meta.deleting_since;
    for (const Job& job : view.jobs) {
        if (!owns(dataset.meta, job.meta)) {
            continue;
        }
        plan.create = false;
        if (job.meta.name != name && !job.meta.deleting_since) {
            plan.remove.push_back(job);
        }
    }
    const bool some_run = !std::ranges::all_of(view.pods, has_ended);
    plan.create = plan.create && !some_run;
    return plan;
}

PackingOutcome judge_packing(const PackingView& view) {
    return Judge{view}.take();
}

}  // namespace stoker::control
