#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/world/control_api.h"
#include "tests/world/control_sidecar.h"

namespace stoker::world {

// Kubernetes around the operator: Job controller, scheduler, kubelets and garbage collector, as far
// as Stoker sees them. A pod's sidecar is a ControlSidecar. Not thread-safe.
class ControlCluster {
public:
    enum class Phase : std::uint8_t { kPending, kScheduled, kRunning, kSucceeded, kFailed };

    struct Pod {
        ObjectKey key;
        ObjectKey job;
        std::string owner;  // TrainingJob in its label; "": a filler
        std::int64_t rank = 0;
        std::string node;  // "": not scheduled
        Phase phase = Phase::kPending;
        bool is_ready = false;
        bool is_deleted = false;  // its processes end, then the object is removed
        bool is_disrupted = false;
        std::unique_ptr<ControlSidecar> sidecar;

        [[nodiscard]] bool has_ended() const {
            return phase == Phase::kSucceeded || phase == Phase::kFailed;
        }
    };

    struct Settings {
        std::function<Bytes(const std::string& uid)> total_of;  // the size of a dataset
        std::function<std::string(const std::string& uid)> namespace_of;
        SidecarWorld sidecars;
    };

    ControlCluster(Schedule& schedule, ControlApi& api, Settings settings);

    void add_node(const std::string& name);
    // The node's machine is gone: its pods stop, and Kubernetes notices within two minutes.
    void lose_node(const std::string& name);

    // Reads all changes at the API server now.
    void catch_up();
    // Follows the API server anew. Call catch_up(), ControlApi::compact(), and then this.
    void skip_history();

    // Kills the sidecar of that pod; the kubelet starts it again.
    void kill_sidecar(Pod& pod);
    // The trainer ends, or fails; nothing happens unless it runs.
    void end_trainer(const ObjectKey& pod, bool succeeds);

    // Trainers that start from now on run until they are told to end.
    void run_for_ever() { trainers_end_ = false; }

    [[nodiscard]] std::map<std::string, ControlNode>& nodes() { return nodes_; }

    [[nodiscard]] std::map<ObjectKey, Pod>& pods() { return pods_; }

    // Called with a message for the report when a promise about the cluster's own objects is
    // broken.
    std::function<void(std::string)> on_broken;

private:
    struct Job {
        ObjectKey key;
        std::string uid;
        std::string owner;  // TrainingJob in its label
        std::string node;   // of a filler
        std::int64_t ranks = 1;
        bool is_indexed = true;
        bool is_deleted = false;
        bool has_ended = false;
        bool is_failing = false;
        std::int64_t pods_made = 0;
        std::set<std::int64_t> succeeded;
        std::string template_labels;       // JSON
        std::string template_annotations;  // JSON
        std::string template_volumes;      // JSON
        std::string sidecar_config;
        std::string status;  // as last written
    };

    void tick();
    void take_line(const ResourceKind& kind, const std::string& line);
    void take_job(const std::string& type, const web::json::value& object);
    void take_pod(const std::string& type, const web::json::value& object);
    void sync(Job& job);
    void make_pods(Job& job);
    void make_pod(Job& job, std::int64_t rank);
    void end_job(Job& job, bool succeeded, const std::string& reason);
    void write_job_status(Job& job);
    void release(const ResourceKind& kind, const ObjectKey& key);
    void after(Duration delay, const ObjectKey& pod, void (ControlCluster::*step)(Pod&));
    void schedule_pod(Pod& pod);
    void start_pod(Pod& pod);
    void start_sidecar(Pod& pod);
    void shut_down_sidecar(Pod& pod);
    void ready_pod(Pod& pod);
    void train(Pod& pod);
    void terminate(Pod& pod);
    void write_pod_status(const Pod& pod, const std::string& more = {});
    void delete_pod(Pod& pod);
    void evict_from(const std::string& node);
    [[nodiscard]] std::vector<Pod*> pods_of(const Job& job);
    [[nodiscard]] std::string now_text() const;

    Schedule& schedule_;
    ControlApi& api_;
    Settings settings_;
    bool trainers_end_ = true;
    std::map<std::string, ControlNode> nodes_;
    std::map<ObjectKey, Job> jobs_;
    std::map<ObjectKey, Pod> pods_;
    test::WatchCursor job_cursor_;
    test::WatchCursor pod_cursor_;
    std::uint64_t seeds_ = 0;
};

}  // namespace stoker::world
