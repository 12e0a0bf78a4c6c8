#include "operator/core/lifecycle/attempts.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "common/base/utf8.h"

namespace stoker::control {

namespace {

constexpr std::size_t kQuotedBytesMax = 240;
constexpr Duration kFirstDelay = std::chrono::seconds{10};
constexpr Duration kLongestDelay = std::chrono::seconds{360};

// The last non-blank line of a text, cut to kQuotedBytesMax.
std::string last_line(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t last = text.find_last_not_of(kBlank);
    if (last == std::string_view::npos) {
        return {};
    }
    text = text.substr(0, last + 1);
    text.remove_prefix(text.find_last_of("\r\n") + 1);
    text.remove_prefix(text.find_first_not_of(kBlank));
    const std::string_view start = utf8_prefix(text, kQuotedBytesMax);
    return fmt::format("{}{}", start, start.size() < text.size() ? "..." : "");
}

bool is_node_lost(const TrainingJobView& view, const std::string& name, WallTime now) {
    return std::ranges::none_of(view.nodes, [&](const Node& node) {
        const bool lives =
            node.ready || !node.not_ready_since || now - *node.not_ready_since < kLostNodeAfter;
        return node.meta.name == name && lives;
    });
}

bool is_lost(const TrainingJobView& view, const Pod& pod, WallTime now) {
    return !has_ended(pod) && pod.meta.deleting_since && !pod.node_name.empty() &&
           is_node_lost(view, pod.node_name, now);
}

// The node restarted under the container, so nobody saw how it ended: containerd calls that "Unknown"
// (exit code 255), the kubelet "ContainerStatusUnknown" (137). A program's own exit is never called so.
bool was_cut_off(const Pod& pod) {
    const std::string& reason = pod.trainer.reason;
    return pod.trainer.exit_code && (reason == "Unknown" || reason == "ContainerStatusUnknown");
}

// The Job's pods by rank, then name: messages do not depend on the order of the view.
std::vector<const Pod*> pods_of(const std::vector<Pod>& pods, const std::string& job_name) {
    std::vector<const Pod*> result;
    for (const Pod& pod : pods) {
        if (job_name_of(pod) == job_name) {
            result.push_back(&pod);
        }
    }
    std::sort(result.begin(), result.end(), [](const Pod* a, const Pod* b) {
        return std::make_tuple(rank_of(*a), a->meta.name) <
               std::make_tuple(rank_of(*b), b->meta.name);
    });
    return result;
}

std::string waits_for(const Pod& pod) {
    const std::string& name = pod.meta.name;
    if (!pod.unschedulable_message.empty()) {
        return fmt::format("Pod {} waits for a node: {}", name, pod.unschedulable_message);
    }
    for (const ContainerState* container : {&pod.sidecar, &pod.s3, &pod.files, &pod.trainer}) {
        const std::string& reason = container->waiting_reason;
        if (!reason.empty() && reason != "PodInitializing" && reason != "ContainerCreating") {
            const std::string& words = container->message;
            return fmt::format(
                "Pod {} waits: {}{}{}", name, reason, words.empty() ? "." : ": ", words);
        }
    }
    return {};
}

}  // namespace

Attempts find_attempts(const TrainingJobView& view) {
    Attempts result;
    result.number = view.job.status.attempt;
    for (const Job& job : view.jobs) {
        if (owns(view.job.meta, job.meta) && attempt_of(job.meta) > 0) {
            result.older.push_back(&job);
            result.number = std::max(result.number, attempt_of(job.meta));
        }
    }
    std::ranges::sort(result.older, {}, [](const Job* job) { return attempt_of(job->meta); });
    if (!result.older.empty() && attempt_of(result.older.back()->meta) == result.number) {
        result.current = result.older.back();
        result.older.pop_back();
    }
    return result;
}

NameClash find_name_clash(const TrainingJobView& view, const Attempts& attempts) {
    // Objects of a deleted TrainingJob with the same name will be garbage-collected.
    const auto is_leaving = [&](const ObjectMeta& meta) {
        const OwnerReference* owner = meta.controller();
        return meta.deleting_since || (owner != nullptr && owner->kind == "TrainingJob" &&
                                       owner->name == view.job.meta.name);
    };
    NameClash clash;
    if (view.service && !owns(view.job.meta, *view.service)) {
        clash = {"Service " + view.service->name, is_leaving(*view.service)};
    }
    const std::string wanted = job_name(view.job, std::max<std::int64_t>(attempts.number, 1));
    for (const Job& job : view.jobs) {
        if (job.meta.name == wanted && !owns(view.job.meta, job.meta)) {
            clash = {"Job " + job.meta.name, is_leaving(job.meta)};
        }
    }
    return clash;
}

std::vector<SidecarReport> reports_of_attempt(const TrainingJobView& view, std::int64_t attempt) {
    const std::string prefix = pod_prefix(view.job, attempt);
    std::vector<SidecarReport> result;
    for (const SidecarReport& report : view.reports) {
        if (report.pod.starts_with(prefix)) {
            result.push_back(report);
        }
    }
    return result;
}

std::string change_of(const Job& attempt, std::int64_t ranks_wanted) {
    const std::string& name = attempt.meta.name;
    if (attempt.suspend) {
        return fmt::format("Somebody else has suspended Job {}", name);
    }
    const std::int64_t ranks = attempt.completions.value_or(ranks_wanted);
    return ranks == ranks_wanted
               ? ""
               : fmt::format("Job {} has {} ranks, not {} (numNodes)", name, ranks, ranks_wanted);
}

Duration restart_delay(std::int64_t restarts) {
    if (restarts <= 1) {
        return Duration::zero();
    }
    Duration delay = kFirstDelay;
    for (std::int64_t i = 2; i < restarts && delay < kLongestDelay; ++i) {
        delay *= 2;
    }
    return std::min(delay, kLongestDelay);
}

bool pods_are_gone(const TrainingJobView& view, const Attempts& attempts, WallTime now) {
    const auto stays = [&](const Pod& pod) {
        return (!has_ended(pod) || pod.meta.deleting_since) && !is_lost(view, pod, now);
    };
    const auto is_lost_job = [&](const Job* job) {
        return !lost_pods(view, job->meta.name, now).empty();
    };
    const Job* current = attempts.current;
    return std::ranges::none_of(view.pods, stays) &&
           std::ranges::all_of(attempts.older, is_lost_job) &&
           (current == nullptr || current->end || is_lost_job(current));
}

std::vector<std::string> lost_pods(
    const TrainingJobView& view, const std::string& job_name, WallTime now) {
    std::vector<std::string> result;
    for (const Pod* pod : pods_of(view.pods, job_name)) {
        if (is_lost(view, *pod, now)) {
            result.push_back(pod->meta.name);
        }
    }
    return result;
}

bool was_disrupted(const Job& job, const std::vector<Pod>& pods) {
    if (job.end && job.end->message.find("DisruptionTarget") != std::string::npos) {
        return true;
    }
    const std::vector<const Pod*> ours = pods_of(pods, job.meta.name);
    return std::ranges::any_of(
        ours, [](const Pod* pod) { return !pod->disruption.empty() || was_cut_off(*pod); });
}

std::string failure_of(const Job& job, const std::vector<Pod>& pods) {
    for (const Pod* pod : pods_of(pods, job.meta.name)) {
        if (!pod->disruption.empty()) {
            return fmt::format("pod {} was disrupted ({}).", pod->meta.name, pod->disruption);
        }
    }
    for (const Pod* pod : pods_of(pods, job.meta.name)) {
        if (was_cut_off(*pod)) {
            return fmt::format(
                "pod {} ended when its node {} restarted.", pod->meta.name, pod->node_name);
        }
    }
    for (const Pod* pod : pods_of(pods, job.meta.name)) {
        if (pod->trainer.exit_code.value_or(0) != 0) {
            const std::string last = last_line(pod->trainer.message);
            return fmt::format(
                "rank {} (pod {}) exited with code {} ({}){}.",
                rank_of(*pod).value_or(0),
                pod->meta.name,
                *pod->trainer.exit_code,
                pod->trainer.reason,
                last.empty() ? "" : fmt::format(": \"{}\"", last));
        }
    }
    const std::string told = job.end ? job.end->message : "";
    return told.empty() ? "the Job does not say why." : told + ".";
}

std::string what_pods_wait_for(const std::vector<Pod>& pods, const std::string& job_name) {
    for (const Pod* pod : pods_of(pods, job_name)) {
        std::string reason = waits_for(*pod);
        if (!reason.empty()) {
            return reason;
        }
    }
    return {};
}

std::int64_t ranks_running(const Job& attempt, const std::vector<Pod>& pods) {
    const auto runs = std::ranges::count_if(pods, [&attempt](const Pod& pod) {
        return job_name_of(pod) == attempt.meta.name &&
               (pod.phase == PodPhase::kSucceeded || pod.trainer.exit_code == 0 ||
                (pod.phase == PodPhase::kRunning && pod.ready));
    });
    return std::max<std::int64_t>(attempt.ready + attempt.succeeded, runs);
}

std::string tell_ranks(const Job& attempt, const std::vector<Pod>& pods, std::int64_t wanted) {
    const std::int64_t running = ranks_running(attempt, pods);
    if (running >= wanted) {
        return wanted == 1 ? "The only rank runs." : fmt::format("All {} ranks run.", wanted);
    }
    const std::string reason = what_pods_wait_for(pods, attempt.meta.name);
    return fmt::format(
        "{} of {} ranks run.{}{}", running, wanted, reason.empty() ? "" : " ", reason);
}

}  // namespace stoker::control
