#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "tests/world/control_cluster.h"
#include "tests/world/control_operator.h"

namespace stoker::world {

inline constexpr const char* kNamespaces[] = {"na", "nb", "nc"};

struct ControlOutcome {
    std::string accusation;  // empty: every promise was kept
    std::vector<std::string> log;
    Duration passed{};
    std::uint64_t steps = 0;
    std::map<std::string, std::uint64_t> counts;  // numbers of faults and events, by name
};

// The operator's world of one seed: users, API server, Kubernetes, one operator (two during a
// failover) and the pods' sidecars, on one thread in virtual time. docs/design/simulation.md.
class ControlWorld {
public:
    explicit ControlWorld(std::uint64_t seed);
    ~ControlWorld();
    ControlWorld(const ControlWorld&) = delete;
    ControlWorld& operator=(const ControlWorld&) = delete;

    // Runs the faults, then waits until the world is at rest. Call it once.
    ControlOutcome run();

    [[nodiscard]] const std::vector<std::string>& log() const { return schedule_.log(); }

private:
    friend class ControlScenario;  // a script instead of the seed's faults

    struct Dataset {
        ObjectKey key;
        Bytes total{};
        std::uint64_t revision = 1;  // of its origin
    };

    struct Quota {
        Bytes nominal{};
        Bytes borrowing = Bytes::unlimited();
        Bytes lending = Bytes::unlimited();
    };

    using Place = std::pair<std::string, std::string>;  // node, uid of the dataset

    // The figures of the operator's last plan for a place.
    struct Known {
        Bytes resident{};
        Bytes outstanding{};  // the largest grant that the sidecar may hold
    };

    // Bytes of a namespace or on a node.
    struct Use {
        Bytes possible{};  // held, as far as the operator can know, or granted: what is promised
        Bytes actual{};    // on the disks, or granted; an expired grant counts
    };

    struct Uses {
        std::map<std::string, Use> by_namespace;
        std::map<std::string, Use> by_node;
    };

    // A node directory whose exact number of bytes the operator knew when the last sidecar there
    // ended.
    struct LeftBehind {
        std::string knower;  // the operator's process
        Bytes resident{};
    };

    using Action = void (ControlWorld::*)();

    // control_world.cc
    void make_objects();
    void make_dataset(const std::string& ns, std::uint64_t number);
    void make_quota(const std::string& ns);
    [[nodiscard]] std::string quota_spec(const Quota& quota) const;
    Quota draw_quota();
    void start_operator();
    // Starts an operator after `delay`, unless another process leads by then.
    void start_operator_in(Duration delay);
    // The process that may write; nullptr: none.
    [[nodiscard]] ControlOperator* leader() const;
    std::shared_ptr<ControlStream> dial(ControlSidecar& sidecar);
    void report_nodes();
    void report_node(ControlNode& node, ControlOperator& leader);
    void sweep(ControlNode& node, const control::SweepOrder& order);
    bool step(TimePoint end);
    void heal();
    ControlOutcome come_to_rest();
    ControlOutcome outcome();
    void accuse(std::string words);
    void count(const std::string& what);

    // control_faults.cc
    void begin_faults();
    void begin_group(
        const std::string& name, const std::vector<std::pair<const char*, Action>>& kinds);
    void repeat(const std::string& name, Action action, Duration mean);
    void during(Duration time, std::function<void()> end);
    ControlCluster::Pod* draw_pod();
    std::optional<ObjectKey> draw_job();
    void create_job();
    void delete_job();
    void toggle_suspension();
    void change_quota();
    void resize_pool();
    void recreate_dataset();
    void change_origin();
    void occupy_job_name();
    void kill_operator();
    void kill_operator_in_a_call();
    void replace_leader();
    void api_down();
    void api_errors();
    void cut_watches();
    void delay_watches();
    void compact_history();
    void stale_lists();
    void cut_stream();
    void stall_stream();
    void garble_stream();
    void double_reports();
    void kill_sidecar();
    void resist_eviction();
    void fail_trainer();
    void lose_node();
    void jump_wall_clock();

    // control_checks.cc
    void check();
    void note_knowledge();
    [[nodiscard]] bool is_behind(ControlOperator& process) const;
    [[nodiscard]] bool has_heard() const;
    void check_nodes(const Uses& uses);
    void tell_uses(const std::string& node);
    void check_quotas(const Uses& uses);
    void check_memory();
    void check_rest();
    void check_jobs();
    void check_pins();
    [[nodiscard]] std::string unrest();
    [[nodiscard]] std::string job_unrest(const ObjectKey& key, const Json& job);
    [[nodiscard]] std::string grant_unrest();
    [[nodiscard]] Uses uses();
    [[nodiscard]] std::string broken_quota(
        const std::map<std::string, Bytes>& used, const std::set<std::string>& counted) const;
    [[nodiscard]] std::map<Place, Bytes> granted();
    [[nodiscard]] Bytes counted(
        const std::string& node, const std::string& uid, const NodeDirectory& directory) const;

    // control_peers.cc
    void check_group(ControlSidecar& sidecar, const control::PeerGroup& group);
    void check_groups();
    void check_certificate(ControlSidecar& sidecar, const std::string& uris);
    [[nodiscard]] std::string peer_unrest();

    // control_writes.cc
    void check_write(const ApiWrite& write);
    void check_new_child(const ApiWrite& write, const ResourceKind& kind, const Json& made);
    void check_new_job(const Json& made, const std::string& owner_uid);

    std::uint64_t seed_;
    Schedule schedule_;
    JumpingClock wall_;
    ControlApi api_;
    bool is_shared_ = false;
    Bytes capacity_{};                         // of the pool, on each node
    std::map<std::string, Dataset> datasets_;  // by uid
    std::map<std::string, Dataset> gone_datasets_;
    std::map<std::string, Quota> quotas_;  // by namespace
    std::map<Place, Known> known_;         // by the last operator that has planned
    std::string knower_;                   // name of the operator process that `known_` is from
    std::map<Place, LeftBehind> left_behind_;
    // When the users' specs or the nodes last changed, or an operator's cache last lacked a change.
    TimePoint behind_at_{};
    std::ptrdiff_t nodes_before_ = 0;  // at the last check
    Uses uses_before_;                 // at the last check
    std::uint64_t checks_ = 0;
    std::set<ObjectKey> jobs_;       // TrainingJobs that users may change
    std::set<ObjectKey> strangers_;  // Jobs of other clients
    std::set<ObjectKey> suspended_;
    std::set<std::string> final_;  // uids of TrainingJobs that have ended
    std::uint64_t jobs_made_ = 0;
    std::uint64_t nodes_made_ = 0;
    std::uint64_t processes_ = 0;
    double doubled_ = 0;
    std::unique_ptr<ControlCluster> cluster_;
    std::map<std::string, std::vector<control::SweepResult>> sweeps_;  // by node, unconfirmed
    std::set<std::string> sweeps_seen_;
    std::vector<std::unique_ptr<ControlOperator>> operators_;  // the newest leads
    TimePoint faults_end_{};
    bool is_calm_ = false;
    std::string accusation_;
    std::map<std::string, std::uint64_t> counts_;
};

}  // namespace stoker::world
