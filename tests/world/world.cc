#include "tests/world/world.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "common/domain/node_directory.h"

namespace stoker::world {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLivenessBound = seconds{900};
constexpr std::uint64_t kStepsMax = 20'000'000;

}  // namespace

World::World(std::uint64_t seed, Size size, std::optional<Script> script)
    : seed_(seed),
      script_(std::move(script)),
      schedule_(seed),
      peers_chance_(seed ^ 0x7065657273),
      aims_chance_(seed ^ 0x61696d73),
      share_chance_(seed ^ 0x7368617265) {
    schedule_.hide(folder_.path());
    schedule_.set_speaker("world");
    make_plan(size);
    make_peers();
    make_nodes();
    make_jobs();
    make_pods();
    say_plan();
    draw_aims();
}

World::~World() {
    for (Pod& pod : pods_) {
        pod.trainer.reset();
        if (pod.sidecar != nullptr) {
            pod.sidecar->kill();
        }
        pod.sidecar.reset();
    }
}

bool World::Pod::is_ready_leader() const {
    return sidecar != nullptr && !sidecar->is_dead() && sidecar->leader() != nullptr &&
           sidecar->leader()->state() == control::ManifestState::kReady;
}

void World::make_nodes() {
    Prng& luck = schedule_.luck();
    for (std::size_t i = 0; i < plan_.nodes; ++i) {
        Node& node = nodes_.emplace_back();
        node.name = node_name(i);
        node.directory = fmt::format("{}/{}", folder_.path(), node.name);
        node.capacity = mib(24 + luck.below(64));
        node.disk = std::make_unique<test::FaultDevice>(luck());
        node.disk->set_capacity(node.capacity);
        node.view = std::make_unique<NodeView>(
            *node.disk, domain::data_folder(node.directory), dataset_->manifest().revision());
        node.grant.resident_bytes = draw_grant();
        // Real folders for the leaders' sockets; everything else is on the node's simulated disk.
        std::filesystem::create_directories(domain::control_folder(node.directory));
        std::filesystem::create_directories(domain::guests_folder(node.directory));
    }
}

void World::make_jobs() {
    Prng& luck = schedule_.luck();
    for (std::size_t i = 0; i < plan_.jobs; ++i) {
        Job& job = jobs_.emplace_back();
        job.name = fmt::format("job-{}", i);
        constexpr std::array kContracts{
            "exact", "windowed", "exact", "windowed", "importance", "replicate"};
        job.contract = kContracts.at(luck.below(kContracts.size()));
        job.contract = plan_.shares_windows ? "windowed" : job.contract;
        if (i > 0 && luck.below(4) == 0) {
            job.guest_of = fmt::format("team-{}", luck.below(2));
        }
        if (script_) {
            const bool is_guest = script_->last_job_is_guest && i + 1 == plan_.jobs;
            job.contract = script_->contract;
            job.guest_of = is_guest ? "team-0" : "";
        }
        job.seed = 7 + i;
        job.batch = 1 + static_cast<std::uint32_t>(luck.below(16));
        if (plan_.shares_windows) {
            job.batch = 8 + static_cast<std::uint32_t>(share_chance_.below(9));
        }
        const bool steps_together = luck.below(2) == 0;
        job.steps_together = steps_together && (!script_ || script_->epochs == 0);
    }
}

void World::make_pods() {
    pods_.resize(plan_.pods);
    const auto window_kib = schedule_.draw_scale(Duration{256}, Duration{4096}).count();
    const Bytes window =
        kib(plan_.shares_windows ? 64 + share_chance_.below(192)
                                 : static_cast<std::uint64_t>(window_kib));
    for (std::size_t i = 0; i < pods_.size(); ++i) {
        configure(pods_[i], i);
        // Pods of one dataset may have different window sizes: a new leader may find more samples
        // in the window than its own window size allows.
        pods_[i].config.datasets[0].window_bytes =
            schedule_.draw_chance(0.2) ? Bytes{window.count() / 4} : window;
        if (script_) {
            follow_script(pods_[i]);
        }
        place(pods_[i], nodes_[i % nodes_.size()]);
    }
    std::size_t left = pods_.size();
    for (Pod& pod : pods_) {
        pod.settings.ranks = pod.job->ranks;
        const Duration comes =
            script_ && left-- <= script_->late_pods ? script_->late_by : Duration{};
        schedule_.run_in(
            comes + schedule_.draw(Duration{}, seconds{3}), [this, &pod] { start_sidecar(pod); });
        // Some trainers start late: until then their sidecars have no session.
        const bool comes_late = schedule_.draw_chance(0.5) && !script_;
        Duration latest = comes_late ? seconds{300} : seconds{3};
        latest = script_ && script_->epochs > 0 ? Duration{} : latest;
        const Duration after = comes + (script_ ? script_->trainers_wait : Duration{});
        schedule_.run_in(
            after + schedule_.draw(Duration{}, latest), [this, &pod] { start_trainer(pod); });
    }
}

void World::configure(Pod& pod, std::size_t index) {
    Prng& luck = schedule_.luck();
    Job& job = jobs_[index < jobs_.size() ? index : luck.below(jobs_.size())];
    pod.job = &job;
    pod.config.job.pod = fmt::format("pod-{}", index);
    pod.config.job.training_job_uid = job.name;
    pod.config.job.attempt_uid = job.name + "/1";
    pod.config.socket_path = fmt::format("{}/{}.sock", folder_.path(), pod.config.job.pod);
    pod.config.io_threads = 1 + static_cast<std::uint32_t>(luck.below(3));
    sidecar::DatasetConfig& data = pod.config.datasets.emplace_back();
    data.name = data.uid = "train";
    data.memory_bytes = kib(64 + luck.below(4096));
    data.readahead_bytes = kib(16 + luck.below(1024));
    data.max_in_flight = 1 + static_cast<std::uint32_t>(luck.below(16));
    data.reserved_free = luck.below(2) == 0 ? 0 : 0.1;
    data.step_aside_window = Duration{};  // the bypass check would measure the real disk
    data.guest = !job.guest_of.empty();
    data.peers = network_ != nullptr;
    pod.config.job.pod_namespace = network_ != nullptr && !data.guest ? kOwner : "";
    const bool is_refused =
        script_ ? script_->first_key_is_refused && index == 0
                : index > 0 && every(Fault::kKeyRefused) > Duration{} && luck.below(3) == 0;
    if (is_refused) {
        site_->weather.refused.insert(pod.config.job.pod);  // until the faults end
        pod.refused_at = schedule_.now();
        pod.refused_until = TimePoint::max();
    }
    if (data.guest && (script_ ? !script_->guest_has_key : luck.below(2) == 0)) {
        site_->keyless.insert(pod.config.job.pod);
    }
    pod.settings.name = fmt::format("trainer-{}", index);
    pod.settings.pod = pod.config.job.pod;
    pod.settings.socket_path = pod.config.socket_path;
    pod.settings.contract = job.contract;
    pod.settings.job = job.name;
    pod.settings.seed = job.seed;
    pod.settings.rank = job.ranks++;
    pod.settings.batch = job.batch;
    pod.settings.compute = schedule_.draw_scale(milliseconds{100}, seconds{3});
    pod.settings.looks_ahead = luck.below(2) == 0;
}

void World::follow_script(Pod& pod) const {
    sidecar::DatasetConfig& data = pod.config.datasets[0];
    data.window_bytes = script_->window;
    data.eviction = script_->eviction;
    data.reserved_free = 0;
    data.pinned = script_->is_pinned;
    pod.config.control.endpoint = script_->is_operated ? "operator:9443" : "";
    pod.settings.compute = script_->compute;
    pod.settings.batch = 8;
    if (script_->epochs > 0) {
        const sidecar::DatasetConfig defaults;
        data.memory_bytes = defaults.memory_bytes;
        data.readahead_bytes = defaults.readahead_bytes;
        data.max_in_flight = 64;  // an S3 origin starts with this
        pod.config.io_threads = 2;
        pod.settings.looks_ahead = true;
        pod.settings.epochs = script_->epochs;
    }
}

// The pod's next sidecar and trainer run on this node; none of them may run now.
void World::place(Pod& pod, Node& node) {
    pod.node = &node;
    pod.config.job.node = node.name;
    sidecar::DatasetConfig& data = pod.config.datasets[0];
    data.directory = node.directory;
    if (data.guest) {
        data.directory = show_to(node, pod.job->guest_of);
    }
    data.client_directory = domain::data_folder(node.directory);
    pod.settings.data_folder = data.client_directory;
}

// Makes the directory that the node program shows to a guest, with only the guest's own folder.
std::string World::show_to(const Node& node, const std::string& guest) {
    const std::string folder = sidecar::join_path(domain::guests_folder(node.directory), guest);
    const std::string view = fmt::format("{}-{}", node.directory, guest);
    std::filesystem::create_directories(folder);
    if (std::filesystem::create_directories(view)) {
        std::filesystem::create_directory_symlink(folder, domain::guests_folder(view));
    }
    return view;
}

void World::start_sidecar(Pod& pod) {
    if (pod.sidecar != nullptr) {
        return;
    }
    Node& node = *pod.node;
    if (schedule_.now() < node.on_at) {
        schedule_.run_in(node.on_at - schedule_.now(), [this, &pod] { start_sidecar(pod); });
        return;
    }
    const std::string name = fmt::format("sidecar-{}#{}", pod.settings.pod.substr(4), ++pod.starts);
    pod.config.datasets[0].grant_bytes = node.grant.resident_bytes;
    pod.started_at = schedule_.now();
    pod.sidecar = std::make_unique<SidecarProcess>(
        NodeParts{
            schedule_,
            *oracle_,
            *site_,
            *node.disk,
            slowest_task_,
            node.name,
            [this, &node](std::uint64_t sample) {
                note_origin_fetch(node, sample);
                return is_on_node(node, sample);
            },
            pod.config.datasets[0].guest ? nullptr : network_.get(),
            address_of(pod)},
        name,
        pod.config,
        fmt::format("{}-boot-{}", node.name, node.boots));
    greet_peer(pod);
}

void World::start_trainer(Pod& pod) {
    if (pod.trainer != nullptr || pod.progress.is_done) {
        return;
    }
    if (schedule_.now() < pod.node->on_at) {
        schedule_.run_in(pod.node->on_at - schedule_.now(), [this, &pod] { start_trainer(pod); });
        return;
    }
    schedule_.set_speaker(pod.settings.name);
    schedule_.say("starts on " + pod.node->name);
    pod.trainer = std::make_unique<Trainer>(
        schedule_,
        pod.settings,
        *pod.node->disk,
        *site_,
        *oracle_,
        pod.progress,
        TrainerCallbacks{
            [this] { return may_trainers_end(); },
            [this, &pod] { return may_begin(pod); },
            [this, &pod] { return site_->keyless.contains(pod.settings.pod); },
            [this, &pod] { check_welcome(pod); },
            [this, &pod](bool had_session) { check_loss(pod, had_session); },
            [this, &pod] { check_unreadable(pod); },
            [this, &pod](const std::string& what, const std::vector<std::uint64_t>& samples) {
                if (samples.empty() || !std::ranges::all_of(samples, [&](std::uint64_t sample) {
                        return is_lied_about(*pod.node, sample);
                    })) {
                    check_refused(pod, what);
                }
            },
            [this, &pod](const std::string& what) { check_no_room(pod, what); }});
}

// Whether the pod's trainer may begin its next epoch: in a job whose ranks step together, all must
// have ended the last one.
bool World::may_begin(const Pod& pod) const {
    return !pod.job->steps_together || std::ranges::all_of(pods_, [&pod](const Pod& other) {
        return other.job != pod.job || other.progress.is_done ||
               other.progress.epoch >= pod.progress.epoch;
    });
}

// Ends the sidecar. The kubelet starts it again after `away`.
void World::end_sidecar(Pod& pod, Duration away) {
    pod.sidecar.reset();
    schedule_.run_in(away, [this, &pod] { start_sidecar(pod); });
}

// Destroys sidecars whose process died in the last step.
void World::reap() {
    for (Pod& pod : pods_) {
        if (pod.sidecar != nullptr && pod.sidecar->is_dead()) {
            schedule_.say(pod.sidecar->name() + " is dead");
            end_sidecar(pod, some_time());
        }
        if (pod.trainer != nullptr && pod.progress.is_done) {
            pod.trainer.reset();
        }
    }
}

bool World::is_over() const {
    return std::ranges::all_of(pods_, [](const Pod& pod) { return pod.progress.is_done; });
}

void World::begin() {
    if (!std::exchange(is_begun_, true)) {
        schedule_.run_in(plan_.faults_end, [this] { heal(); });
        look();
    }
}

std::string World::run_for(Duration time) {
    begin();
    const TimePoint end = schedule_.now() + time;
    while (oracle_->accusation().empty() && schedule_.step(end)) {
        reap();
        take_aims();
    }
    return oracle_->accusation();
}

Outcome World::run() {
    begin();
    const TimePoint end = testing::ManualClock::kStart + plan_.faults_end + kLivenessBound;
    while (oracle_->accusation().empty() && !is_over()) {
        if (!schedule_.step(end) || schedule_.steps() > kStepsMax) {
            for (const Pod& pod : pods_) {
                if (!pod.progress.is_done) {
                    oracle_->accuse(fmt::format(
                        "{} has not ended {:.0f} s after the last fault",
                        pod.settings.name,
                        seconds_of(kLivenessBound)));
                }
            }
        }
        reap();
        take_aims();
    }
    return {
        oracle_->accusation(),
        schedule_.passed(),
        schedule_.steps(),
        faults_,
        table_,
        oracle_->counts,
        schedule_.log(),
        timeline_};
}

}  // namespace stoker::world
