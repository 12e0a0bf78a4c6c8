#include <fmt/format.h>

#include "common/base/check.h"
#include "operator/kube/resource_kind.h"
#include "tests/world/control_cluster.h"

// The scheduler, the kubelets, and the machines under them.
namespace stoker::world {

namespace kinds = control::kinds;
using std::chrono::milliseconds;
using std::chrono::seconds;

void ControlCluster::after(
    Duration delay, const ObjectKey& key, void (ControlCluster::*step)(Pod&)) {
    schedule_.run_in(delay, [this, key, step] {
        if (const auto pod = pods_.find(key); pod != pods_.end()) {
            (this->*step)(pod->second);
        }
    });
}

void ControlCluster::schedule_pod(Pod& pod) {
    if (pod.is_deleted) {
        return;
    }
    std::vector<std::string> fit;
    for (const auto& [name, node] : nodes_) {
        if (!node.is_gone && (pod.node.empty() || pod.node == name)) {
            fit.push_back(name);
        }
    }
    if (fit.empty()) {
        after(seconds{5}, pod.key, &ControlCluster::schedule_pod);
        return;
    }
    pod.node = fit[schedule_.luck().below(fit.size())];
    pod.phase = Phase::kScheduled;
    api_.merge(kinds::kPods, pod.key, fmt::format(R"({{"spec":{{"nodeName":"{}"}}}})", pod.node));
    schedule_.say(fmt::format("pod {} on {}", pod.key.name, pod.node));
    after(schedule_.draw_scale(milliseconds{50}, seconds{10}), pod.key, &ControlCluster::start_pod);
}

void ControlCluster::start_pod(Pod& pod) {
    if (pod.is_deleted || nodes_[pod.node].is_gone) {
        return;
    }
    for (const auto& [key, other] : pods_) {
        if (!pod.owner.empty() && other.key.ns == pod.key.ns && other.owner == pod.owner &&
            other.job != pod.job && other.phase == Phase::kRunning && !nodes_[other.node].is_gone &&
            on_broken) {
            on_broken(fmt::format(
                "pod {} starts while pod {} of another attempt runs",
                pod.key.name,
                other.key.name));
        }
    }
    pod.phase = Phase::kRunning;
    start_sidecar(pod);
    write_pod_status(pod);
    after(schedule_.draw_scale(milliseconds{50}, seconds{10}), pod.key, &ControlCluster::ready_pod);
}

void ControlCluster::start_sidecar(Pod& pod) {
    const auto job = jobs_.find(pod.job);
    if (pod.is_deleted || pod.has_ended() || pod.sidecar || job == jobs_.end() ||
        nodes_[pod.node].is_gone) {
        return;
    }
    const auto env = [&](const char* variable) -> std::optional<std::string> {
        const std::string name = variable;
        if (name == "POD_NAMESPACE") {
            return pod.key.ns;
        }
        if (name == "POD_NAME" || name == "POD_IP") {
            return pod.key.name;
        }
        if (name == "NODE_NAME") {
            return pod.node;
        }
        if (name == "JOB_COMPLETION_INDEX") {
            return std::to_string(pod.rank);
        }
        return name == "ATTEMPT_UID" ? std::optional(job->second.uid) : std::nullopt;
    };
    auto config = sidecar::parse_sidecar_config(job->second.sidecar_config, env);
    STOKER_CHECK(config.has_value(), config.error().message.c_str());
    ControlNode& node = nodes_[pod.node];
    for (const sidecar::DatasetConfig& dataset : config->datasets) {
        NodeDirectory& directory = node.directories[dataset.uid];
        directory.ns = settings_.namespace_of(dataset.uid);
        directory.total = settings_.total_of(dataset.uid);
    }
    pod.sidecar = std::make_unique<ControlSidecar>(
        schedule_, *std::move(config), node, settings_.sidecars, ++seeds_);
}

void ControlCluster::kill_sidecar(Pod& pod) {
    if (pod.sidecar) {
        pod.sidecar.reset();
        after(
            schedule_.draw_scale(milliseconds{100}, seconds{10}),
            pod.key,
            &ControlCluster::start_sidecar);
    }
}

void ControlCluster::shut_down_sidecar(Pod& pod) {
    if (pod.sidecar) {
        pod.sidecar->shut_down();
        pod.sidecar.reset();
    }
}

void ControlCluster::ready_pod(Pod& pod) {
    if (pod.is_deleted || pod.phase != Phase::kRunning || nodes_[pod.node].is_gone) {
        return;
    }
    pod.is_ready = true;
    write_pod_status(pod);
    if (trainers_end_ && !pod.owner.empty()) {
        after(schedule_.draw_scale(seconds{10}, seconds{600}), pod.key, &ControlCluster::train);
    }
}

void ControlCluster::train(Pod& pod) {
    if (trainers_end_) {
        end_trainer(pod.key, schedule_.luck().below(8) != 0);
    }
}

void ControlCluster::end_trainer(const ObjectKey& key, bool succeeds) {
    const auto found = pods_.find(key);
    if (found == pods_.end()) {
        return;
    }
    Pod& pod = found->second;
    if (pod.is_deleted || pod.phase != Phase::kRunning || nodes_[pod.node].is_gone) {
        return;
    }
    shut_down_sidecar(pod);
    pod.is_ready = false;
    pod.phase = succeeds ? Phase::kSucceeded : Phase::kFailed;
    write_pod_status(pod);
}

void ControlCluster::write_pod_status(const Pod& pod, const std::string& more) {
    const char* phase = pod.phase == Phase::kRunning     ? "Running"
                        : pod.phase == Phase::kSucceeded ? "Succeeded"
                        : pod.phase == Phase::kFailed    ? "Failed"
                                                         : "Pending";
    const std::string state = pod.has_ended()
                                  ? fmt::format(
                                        R"("terminated":{{"exitCode":{},"reason":"{}"}})",
                                        pod.phase == Phase::kSucceeded ? 0 : 1,
                                        pod.phase == Phase::kSucceeded ? "Completed" : "Error")
                                  : R"("running":{})";
    const bool runs = pod.phase == Phase::kRunning;
    const auto done = api_.merge(
        kinds::kPods,
        pod.key,
        fmt::format(
            R"({{"status":{{"phase":"{}","conditions":[{{"type":"Ready","status":"{}"}}{}],)"
            R"("containerStatuses":[{{"name":"trainer","started":{},"ready":{},"state":{{{}}}}}]}}}})",
            phase,
            pod.is_ready ? "True" : "False",
            more,
            runs,
            pod.is_ready,
            state),
        "status");
    STOKER_CHECK(done.status == 200 || done.status == 404, done.body.c_str());
}

void ControlCluster::delete_pod(Pod& pod) {
    if (!pod.is_deleted) {
        api_.remove(kinds::kPods, pod.key);
    }
}

// The kubelet ends the containers, then the object goes. A lost node has no kubelet.
void ControlCluster::terminate(Pod& pod) {
    if (!pod.node.empty() && nodes_[pod.node].is_gone) {
        return;
    }
    shut_down_sidecar(pod);
    release(kinds::kPods, pod.key);
}

void ControlCluster::add_node(const std::string& name) {
    nodes_[name].name = name;
    api_.create(
        kinds::kNodes, "", fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{}}}})", name));
    api_.merge(
        kinds::kNodes,
        {"", name},
        fmt::format(
            R"({{"status":{{"nodeInfo":{{"bootID":"boot-{}"}},"conditions":[{{"type":"Ready","status":"True"}}]}}}})",
            name),
        "status");
}

void ControlCluster::lose_node(const std::string& name) {
    ControlNode& node = nodes_.at(name);
    node.is_gone = true;
    for (auto& [key, pod] : pods_) {
        if (pod.node == name && pod.sidecar) {
            pod.sidecar->lose();
            pod.sidecar.reset();
        }
    }
    schedule_.run_in(seconds{40}, [this, name] {
        api_.merge(
            kinds::kNodes,
            {"", name},
            fmt::format(
                R"({{"status":{{"conditions":[{{"type":"Ready","status":"Unknown","lastTransitionTime":"{}"}}]}}}})",
                now_text()),
            "status");
    });
    schedule_.run_in(schedule_.draw(seconds{60}, seconds{120}), [this, name] {
        api_.remove(kinds::kNodes, {"", name});
        evict_from(name);
    });
}

// The pod garbage collector removes the pods of a node that is no more.
void ControlCluster::evict_from(const std::string& node) {
    nodes_[node].directories.clear();
    nodes_[node].is_removed = true;
    for (auto& [key, pod] : pods_) {
        if (pod.node == node) {
            pod.is_disrupted = true;
            pod.phase = pod.has_ended() ? pod.phase : Phase::kFailed;
            write_pod_status(
                pod, R"(,{"type":"DisruptionTarget","status":"True","reason":"DeletionByPodGC"})");
            api_.remove(kinds::kPods, key);
            release(kinds::kPods, key);
        }
    }
}

}  // namespace stoker::world
