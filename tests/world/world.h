#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tests/world/sidecar_process.h"
#include "tests/world/trainer.h"

namespace stoker::world {

// One thing that may go wrong, and be mended.
enum class Fault : std::uint8_t {
    kKill,           // a sidecar, as by kill -9
    kKillInChange,   // the same, in the middle of a change of the disk
    kShutDown,       // a sidecar, as by SIGTERM
    kStop,           // a sidecar does not run for a while
    kCut,            // a connection of a sidecar
    kTrainerKilled,  // its next process goes on after its last batch
    kPowerCut,       // the node: unsynced blocks and names may be lost
    kDiskBroken,     // one kind of call fails
    kDiskFull,
    kDiskReadOnly,
    kBitRot,  // one bit of a segment
    kOriginDown,
    kOriginStalled,
    kOriginThrottled,
    kKeyRefused,  // the origin refuses one pod's key
    kGrant,       // the operator grants another number of bytes
};
inline constexpr std::size_t kFaultKinds = 16;
std::string_view to_string(Fault fault);

// The world's parameters, drawn from its seed.
struct Plan {
    std::uint64_t samples = 0;
    std::uint64_t sample_bytes_max = 0;
    std::size_t pods = 1;
    bool one_job = false;   // the pods are ranks of one job; else each is a job
    bool windowed = false;  // the pods' contract; else exact
    Bytes disk{};
    Duration faults_end{};
    std::array<Duration, kFaultKinds> every{};  // mean time between two faults of a kind; zero: off
};

// The outcome of one seed.
struct Outcome {
    std::string accusation;  // the first broken promise; empty: none
    Duration passed{};       // virtual
    std::uint64_t steps = 0;
    std::uint64_t faults = 0;
    std::map<std::string, std::uint64_t> counts;
    std::vector<std::string> log;
};

// One node with its pods: a sidecar and a trainer each, one node directory and one origin for all;
// faults from the seed until Plan::faults_end, then none. Every trainer has to end soon after.
class World {
public:
    explicit World(std::uint64_t seed);
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    ~World();

    // Runs to the end, or to the first broken promise.
    Outcome run();

    // The log so far.
    [[nodiscard]] const std::vector<std::string>& log() const { return schedule_.log(); }

private:
    struct Pod {
        sidecar::SidecarConfig config;
        TrainerSettings settings;
        Progress progress;
        std::unique_ptr<SidecarProcess> sidecar;  // nullptr: not running
        std::unique_ptr<Trainer> trainer;
        int starts = 0;
        TimePoint started_at{};
        TimePoint ran_at{};                     // the last end of a stop
        std::optional<TimePoint> refused_at{};  // its key is refused since
        TimePoint refused_until{};
        bool has_led = false;

        // Its sidecar leads and has the listing.
        [[nodiscard]] bool is_ready_leader() const;
    };

    void make_plan();
    void make_pods();
    void configure(Pod& pod, std::size_t index);
    void start_sidecar(Pod& pod);
    void start_trainer(Pod& pod);
    void end_sidecar(Pod& pod, Duration away);
    void schedule_fault(Fault fault);
    void inject(Fault fault);
    bool hit_sidecar(Fault fault, Pod& pod);
    void hit_node(Fault fault);
    void refuse_key(Pod& pod);
    void accept_key(Pod& pod);
    void let_go_on(Pod& pod);
    void cut_power();
    void break_disk();
    bool rot();
    void heal();
    void reap();
    void look();
    void check_leader(bool is_led);
    void check_room(Pod& pod);
    void check_table(Pod& pod);
    void check_loss(const Pod& pod);
    void check_refused(const Pod& pod, const std::string& what);
    void check_welcome(const Pod& pod);
    void check_wait(const Pod& pod);
    void check_error(const Pod& pod);
    void check_unreadable();
    void check_refusals(const std::string& pod, std::uint32_t in_row);
    [[nodiscard]] bool is_well(const Pod& pod, Duration since) const;
    [[nodiscard]] bool is_on_node(std::uint64_t sample);
    void draw_faults();
    Duration note_rough(Duration lasts);

    // No fault of the disk, of connections or of the whole node was felt lately.
    [[nodiscard]] bool is_calm() const { return schedule_.now() >= rough_until_; }

    [[nodiscard]] bool is_over() const;
    [[nodiscard]] Duration some_time();
    void say_plan();

    std::uint64_t seed_;
    Schedule schedule_;
    test::TempFolder folder_;
    Plan plan_;
    std::unique_ptr<test::Dataset> dataset_;
    std::unique_ptr<Oracle> oracle_;
    std::unique_ptr<OriginSite> site_;
    std::unique_ptr<test::FaultDevice> disk_;
    OriginSite::Weather fair_;
    Duration slowest_task_;
    sidecar::EngineGrant grant_;
    TimePoint granted_at_{};
    std::vector<std::pair<TimePoint, Bytes>> old_grants_;  // when each ended, the last minute's
    TimePoint rough_until_{};
    TimePoint shaken_until_{};  // the same with ten seconds instead of a minute
    TimePoint led_at_{};        // a process held the lock, or none could take it
    std::string leader_;        // the last process that held it
    TimePoint leader_since_{};
    TimePoint unready_at_{};  // the last look that found no ready leader
    TimePoint fair_since_{};  // the origin's weather, and the accepted keys
    int unreadable_ = 0;      // faults that let reads of the disk fail, now
    bool has_rotted_ = false;
    std::uint64_t looks_ = 0;
    std::unique_ptr<NodeView> view_;
    int boots_ = 1;
    bool faults_are_over_ = false;
    std::uint64_t faults_ = 0;
    std::vector<Pod> pods_;
};

}  // namespace stoker::world
