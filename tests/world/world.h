#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tests/world/faults.h"
#include "tests/world/peer_groups.h"
#include "tests/world/sidecar_process.h"
#include "tests/world/timeline.h"
#include "tests/world/trainer.h"
#include "tests/world/virtual_network.h"

namespace stoker::world {

constexpr const char* kOwner = "vision";  // the namespace of the dataset, in worlds with peers

// The world's parameters, drawn from its seed.
struct Plan {
    std::size_t nodes = 1;
    std::size_t pods = 1;
    std::size_t jobs = 1;
    std::uint64_t samples = 0;
    std::uint64_t sample_bytes_max = 0;
    Duration faults_end{};
    bool has_peers = false;                     // sidecars of different nodes fetch from each other
    bool shares_windows = false;                // windowed jobs share small windows, which borrow
    std::array<Duration, kFaultKinds> every{};  // mean time between two faults of a kind; zero: off
};

// Sizes that replace the drawn ones; zero: as drawn.
struct Size {
    std::size_t nodes = 0;
    std::size_t jobs = 0;
    std::size_t pods = 0;
};

// A world for a scenario: the seed adds no faults and no guests, and these values are not drawn.
struct Script {
    std::string contract = "exact";  // of every job
    std::uint64_t samples = 200;
    Bytes grant = gib(1);  // on each node
    Bytes window = mib(4);
    std::uint64_t sample_bytes = 0;  // of each sample; 0: random up to 20,000
    double origin_bytes_per_second = 3e5;
    Duration origin_latency = std::chrono::milliseconds{20};
    Duration peer_delay = std::chrono::milliseconds{1};  // of a frame, on average
    Duration compute = std::chrono::seconds{1};          // of a batch of 8
    // Not 0: a measurement. Trainers start together after `trainers_wait`, look ahead, do not wait for
    // each other and end after so many epochs; programs run without delays of the seed, and sidecars
    // have default limits.
    std::uint64_t epochs = 0;
    sidecar::EvictionKind eviction = sidecar::EvictionKind::kAuto;
    bool is_operated = false;  // sidecars keep nothing new before World::grant()
    bool is_pinned = false;    // ranks would wait for the operator's pin, which never comes
    bool last_job_is_guest = false;
    bool guest_has_key = true;
    bool first_key_is_refused = false;  // the key of pod 0, until `lasts`
    bool has_peers = false;
    Duration trainers_wait{};   // trainers start later by this time, when the peers know each other
    std::size_t late_pods = 0;  // so many pods, the last ones, start later by `late_by`
    Duration late_by{};
    Duration lasts = std::chrono::minutes{10};  // then trainers end after their epoch
};

// The outcome of one seed.
struct Outcome {
    std::string accusation;  // the first broken promise; empty: none
    Duration passed{};       // virtual time
    std::uint64_t steps = 0;
    std::uint64_t faults = 0;
    FaultTable table{};
    std::map<std::string, std::uint64_t> counts;
    std::vector<std::string> log;
    Timeline timeline;
};

// Nodes with pods (a sidecar and a trainer each), one node directory a node, one origin for all;
// faults from the seed until Plan::faults_end, then none. Every trainer has to end soon after.
class World {
public:
    explicit World(std::uint64_t seed, Size size = {}, std::optional<Script> script = {});
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    ~World();

    // Runs to the end, or to the first broken promise.
    Outcome run();

    // For scenarios, which name nodes and pods by their index.
    //
    // Runs for this time, or until the first broken promise, which it returns; empty: none.
    std::string run_for(Duration time);
    // A fault as the seed would inject it, with a drawn duration. False: no effect on this pod now.
    bool strike(Fault fault, std::size_t pod);
    // Sends another grant, valid for `valid`; nullopt: for ever.
    void grant(std::size_t node, Bytes resident, std::optional<Duration> valid = {});

    // The pod's sidecar does not run for this time.
    void stop_for(std::size_t pod, Duration lasts) { stop(pods_[pod], lasts); }

    // The origin refuses the pod's key for this time.
    void refuse_key_for(std::size_t pod, Duration lasts) { refuse_key(pods_[pod], lasts); }

    // The pod whose sidecar leads with the listing; nullopt: none.
    [[nodiscard]] std::optional<std::size_t> leader(std::size_t node) const;
    // Status of the node's ready leader; empty: there is none.
    [[nodiscard]] sidecar::LeaderStatus status(std::size_t node) const;
    // nullptr: it does not run.
    [[nodiscard]] const SidecarProcess* sidecar(std::size_t pod) const;

    [[nodiscard]] std::uint64_t epoch(std::size_t pod) const { return pods_[pod].progress.epoch; }

    // The network between peers and the newest group; only if the script has peers.
    [[nodiscard]] VirtualNetwork& network() { return *network_; }

    [[nodiscard]] const control::PeerGroup& group() const { return groups_.newest(); }

    // An older group reaches the pod's sidecar; `version` exists.
    void resend_group(std::size_t pod, std::uint64_t version) {
        deliver_group(pods_[pod], groups_.versions().at(version));
    }

    // Drops all PeerGroup updates to the pod for this time.
    void lose_groups_for(std::size_t pod, Duration lasts) { lose_groups(pods_[pod], lasts); }

    // The pod's sidecar gets this certificate.
    void give_leaf(std::size_t pod, const VirtualLeaf& leaf) { send_leaf(pods_[pod], leaf); }

    // Samples of each member of the newest group, in the order of its members.
    [[nodiscard]] std::vector<std::uint64_t> shares() const;

    [[nodiscard]] static std::string node_name(std::size_t node);

    [[nodiscard]] Duration passed() const { return schedule_.passed(); }

    // How often `what` has happened, from Outcome::counts.
    [[nodiscard]] std::uint64_t count(const std::string& what) const;

    // The log so far.
    [[nodiscard]] const std::vector<std::string>& log() const { return schedule_.log(); }

private:
    // When the origin first and last did not return a sample as listed to the node's leaders.
    struct Lies {
        TimePoint first{};
        TimePoint last{};
    };

    // A machine with a disk, and the node directory on it.
    struct Node {
        std::string name;
        std::string directory;
        std::unique_ptr<test::FaultDevice> disk;
        Bytes capacity{};
        std::unique_ptr<NodeView> view;
        sidecar::EngineGrant grant;
        TimePoint granted_at{};
        bool has_shrunk = false;  // the last grant was smaller than the one before
        std::vector<std::pair<TimePoint, Bytes>> old_grants;  // when each ended, the last minute's
        TimePoint rough_until{};
        TimePoint shaken_until{};   // as rough_until, with ten seconds instead of a minute
        TimePoint led_at{};         // a process held the lock, or none could take it
        TimePoint held_at{};        // the last check that found a process with the lock
        TimePoint leaderless_at{};  // the last check that found the lock free for kUnled
        std::string leader;         // the last process that held it
        TimePoint leader_since{};
        std::string leads;             // the process that led at the last check; empty: none
        std::uint64_t lead_count = 0;  // periods of leadership so far
        std::uint64_t lost_holds = 0;  // unreadable samples whose hold the leader has ended
        TimePoint unready_at{};        // the last check that found no ready leader
        TimePoint on_at{};             // when the node got power
        bool is_lost = false;          // the node gets no pods
        int unreadable = 0;            // faults that let reads of the disk fail, now
        bool has_rotted = false;
        std::map<std::uint64_t, Lies> lies;  // by sample
        std::uint64_t looks = 0;
        std::string checked;  // the last leader whose first table was checked
        // Each sample's residency entry when its bytes were last compared, under this leader.
        std::vector<std::uint64_t> compared;
        int boots = 1;
        // Fetches at the origin by the node's leader since the peers settled: of each sample that
        // the node owns, and of samples of other owners.
        std::map<std::uint64_t, std::uint32_t> own_fetches;
        std::uint64_t stray_fetches = 0;
        std::uint64_t excused_before = 0;  // the leader's hedges and failures when peers settled
    };

    struct Job {
        std::string name;
        std::string contract;
        std::uint64_t seed = 0;
        std::uint32_t ranks = 0;
        std::uint32_t batch = 1;
        std::string guest_of;         // the namespace, of a guest; empty: the dataset's owner
        bool steps_together = false;  // no rank begins an epoch before all have ended the last one
    };

    struct Pod {
        Node* node = nullptr;
        const Job* job = nullptr;
        sidecar::SidecarConfig config;
        TrainerSettings settings;
        Progress progress;
        std::unique_ptr<SidecarProcess> sidecar;  // nullptr: not running
        std::unique_ptr<Trainer> trainer;
        int starts = 0;
        TimePoint started_at{};
        TimePoint ran_at{};                     // the last end of a stop
        std::optional<TimePoint> refused_at{};  // since when its key is refused
        TimePoint refused_until{};
        std::optional<TimePoint>
            asked_again_at{};  // when its trainer asked again after its key was accepted
        TimePoint keyed_at{};  // when the pod got its key
        bool has_led = false;
        std::uint64_t group_version = 0;  // the newest group that has reached its sidecar
        TimePoint group_due{};            // when the last group on its way arrives
        TimePoint groups_late_until{};
        TimePoint groups_lost_until{};
        bool has_bad_leaf = false;

        // The pod's sidecar leads and has the listing.
        [[nodiscard]] bool is_ready_leader() const;
    };

    // A fault that waits for a sidecar in this situation.
    struct Aim {
        Fault fault;
        Situation situation;
        TimePoint until{};
    };

    void make_plan(Size size);
    void draw_faults();
    Bytes draw_grant();
    void make_nodes();
    void make_jobs();
    void make_pods();
    void configure(Pod& pod, std::size_t index);
    void follow_script(Pod& pod) const;
    void place(Pod& pod, Node& node);
    static std::string show_to(const Node& node, const std::string& guest);
    void start_sidecar(Pod& pod);
    void start_trainer(Pod& pod);
    void end_sidecar(Pod& pod, Duration away);
    void schedule_fault(Fault fault);
    bool inject(Fault fault, Pod& pod);
    void draw_sharing(Size size);
    void draw_aims();
    void schedule_aim(Fault fault, Duration every);
    void provoke(Situation situation);
    void take_aims();
    [[nodiscard]] bool is_in(const Pod& pod, Situation situation) const;
    bool hit(Fault fault, Pod& pod);
    bool hit_sidecar(Fault fault, Pod& pod);
    bool kill_trainer(Pod& pod);
    bool hit_disk(Fault fault, Node& node);
    bool hit_origin(Fault fault);
    bool hit_machine(Fault fault, Node& node);
    bool change_grant(Node& node);
    void set_grant(Node& node, const sidecar::EngineGrant& grant);
    void make_peers();
    void draw_peer_faults();
    void greet_peer(Pod& pod);
    void send_leaf(Pod& pod, const VirtualLeaf& leaf);
    [[nodiscard]] VirtualLeaf good_leaf() const;
    void send_group(Pod& pod, const control::PeerGroup& group);
    void deliver_group(Pod& pod, const control::PeerGroup& group);
    bool hit_peers(Fault fault, Pod& pod);
    bool hit_link(Fault fault, Node& node);
    void give_bad_leaf(Pod& pod);
    void disturb_groups(Fault fault, Pod& pod);
    void lose_groups(Pod& pod, Duration lasts);
    void heal_peers();
    Duration draw_for_peers(Duration least, Duration most);
    [[nodiscard]] std::string address_of(const Pod& pod) const;
    void look_at_peers();
    void look_for_group();
    [[nodiscard]] bool have_peers_settled() const;
    [[nodiscard]] bool are_peers_calm() const;
    [[nodiscard]] bool may_trainers_end() const;
    [[nodiscard]] bool knows_its_peers(const Pod& leader) const;
    void note_origin_fetch(Node& node, std::uint64_t sample);
    void find_owners();
    [[nodiscard]] bool keeps_its_own(const Node& node) const;
    void check_strays(Node& node);
    void check_crossed(const Node& node);
    void count(Fault fault, Node* node, const Pod* pod);
    void refuse_key(Pod& pod, Duration lasts);
    void accept_key(Pod& pod);
    void stop(Pod& pod, Duration lasts);
    void let_go_on(Pod& pod);
    void switch_off(Node& node, Fault fault, Duration away);
    void break_disk(Node& node);
    void break_disk(Node& node, test::FaultDevice::Operation operation, std::string_view name);
    bool rot(Node& node);
    void heal();
    void give_keys();
    [[nodiscard]] Bytes window_on(const Node& node) const;
    [[nodiscard]] std::set<std::string> guests_on(const Node& node) const;
    [[nodiscard]] Bytes window_part(const Pod& reader) const;
    [[nodiscard]] Bytes assured_part(const Pod& reader) const;
    [[nodiscard]] Bytes largest_record() const;
    [[nodiscard]] bool can_serve_guest(const Pod& guest) const;
    void reap();
    void look();
    void look_at(Node& node);
    void note_node(const Node& node);
    void note_lead(Node& node);
    void ask_pages();
    void check_leader(Node& node, bool is_led);
    void check_room(Pod& pod);
    void check_table(Pod& pod);
    void check_loss(const Pod& pod, bool had_session);
    void check_refused(const Pod& pod, const std::string& what);
    [[nodiscard]] bool is_lied_about(const Node& node, std::uint64_t sample) const;
    void check_no_room(const Pod& pod, const std::string& what);
    void check_welcome(const Pod& pod);
    void check_wait(const Pod& pod);
    void check_error(Pod& pod);
    void check_unreadable(const Pod& pod);
    [[nodiscard]] Bytes batches_of(const Pod& pod) const;
    void check_refusals(const std::string& pod, std::uint32_t in_row);
    [[nodiscard]] bool is_well(const Pod& pod, Duration since) const;
    [[nodiscard]] bool is_on_node(Node& node, std::uint64_t sample);
    [[nodiscard]] bool may_begin(const Pod& pod) const;
    [[nodiscard]] Pod& pod_named(const std::string& name);
    [[nodiscard]] const Pod* leader_of(const Node& node, bool is_ready) const;
    [[nodiscard]] Situation situation_of(const Pod& pod) const;
    [[nodiscard]] bool is_in_group(const Pod& pod) const;
    [[nodiscard]] std::vector<Node*> others_than(const Node& node);
    Duration note_rough(Node* node, Duration lasts);

    // Whether no fault of the disk, the connections or the whole node has affected the node lately.
    [[nodiscard]] bool is_calm(const Node& node) const {
        return schedule_.now() >= node.rough_until;
    }

    [[nodiscard]] Duration every(Fault fault) const {
        return plan_.every.at(static_cast<std::size_t>(fault));
    }

    void begin();
    [[nodiscard]] bool is_over() const;
    [[nodiscard]] Duration some_time();
    void say_plan();

    std::uint64_t seed_;
    std::optional<Script> script_;
    bool is_begun_ = false;
    Schedule schedule_;
    test::TempFolder folder_;
    Plan plan_;
    std::unique_ptr<test::Dataset> dataset_;
    std::unique_ptr<Oracle> oracle_;
    std::unique_ptr<OriginSite> site_;
    OriginSite::Weather fair_;
    Duration slowest_task_;
    TimePoint fair_since_{};  // the origin's weather, and the accepted keys
    bool faults_are_over_ = false;
    std::uint64_t faults_ = 0;
    FaultTable table_{};
    Timeline timeline_;
    std::uint64_t looks_ = 0;
    Prng peers_chance_;  // for draws of worlds with peers only
    Prng aims_chance_;   // for draws of seeds with aimed faults only
    Prng share_chance_;  // for draws of seeds with shared windows only
    std::vector<Aim> aims_;
    std::unique_ptr<VirtualNetwork> network_;  // nullptr: no peers
    PeerGroups groups_{"train"};
    TimePoint healed_at_{};
    TimePoint unsettled_at_{};  // the last check that found peers that do not know each other
    std::vector<std::string> owners_;         // of each sample by the newest group: the node's name
    std::map<std::string, Bytes> own_bytes_;  // of each node by the newest group, as records
    std::deque<Node> nodes_;
    std::deque<Job> jobs_;
    std::deque<Pod> pods_;
};

}  // namespace stoker::world
