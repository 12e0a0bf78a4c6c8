#include "tests/world/world.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "common/domain/node_directory.h"

namespace stoker::world {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLivenessBound = seconds{900};
constexpr std::uint64_t kStepsMax = 20'000'000;

}  // namespace

World::World(std::uint64_t seed, Size size, std::optional<Script> script)
    : seed_(seed),
      script_(std::move(script)),
      schedule_(seed) {
    schedule_.hide(folder_.path());
    schedule_.set_speaker("world");
    make_plan(size);
    make_nodes();
    make_jobs();
    make_pods();
    say_plan();
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

void World::make_plan(Size size) {
    Prng& luck = schedule_.luck();
    plan_.nodes = 1 + luck.below(4);
    plan_.pods = plan_.nodes + luck.below(4);
    if (size.nodes > 0) {
        plan_.nodes = size.nodes;
    }
    plan_.pods = size.pods > 0 ? size.pods : std::max(plan_.pods, plan_.nodes);
    plan_.jobs = 1 + luck.below(plan_.pods);
    if (size.jobs > 0) {
        plan_.jobs = std::min(size.jobs, plan_.pods);
    }
    plan_.samples = 8 + luck.below(350);
    plan_.sample_bytes_max = 1000 + luck.below(40'000);
    plan_.faults_end = schedule_.draw(seconds{300}, seconds{600});
    if (script_) {
        plan_.samples = script_->samples;
        plan_.sample_bytes_max = 20'000;
        plan_.faults_end = script_->lasts;
    } else {
        draw_faults();
    }
    dataset_ = std::make_unique<test::Dataset>(
        test::Dataset::random(plan_.samples, plan_.sample_bytes_max, luck()));
    oracle_ = std::make_unique<Oracle>(schedule_, *dataset_);
    site_ = std::make_unique<OriginSite>(schedule_, *oracle_);
    site_->on_refused = [this](const std::string& pod, std::uint32_t in_row) {
        check_refusals(pod, in_row);
    };
    site_->on_lie = [this](const std::string& pod, std::uint64_t sample) {
        Node& node = *pod_named(pod).node;
        node.lies.try_emplace(sample, Lies{schedule_.now(), {}}).first->second.last =
            schedule_.now();
    };
    fair_.latency = schedule_.draw_scale(milliseconds{1}, milliseconds{300});
    fair_.bytes_per_second = std::pow(10.0, 5 + 3 * luck.unit());
    if (script_) {
        fair_.latency = milliseconds{20};
        fair_.bytes_per_second = 3e5;
    }
    site_->weather = fair_;
    slowest_task_ = schedule_.draw_scale(microseconds{10}, milliseconds{200});
    schedule_.set_lag(schedule_.draw_scale(microseconds{10}, milliseconds{20}));
}

// Each group of faults is on in half of the seeds, and two thirds of its kinds.
void World::draw_faults() {
    using enum Fault;
    const std::vector<std::vector<Fault>> groups = {
        {kKill, kKillInChange, kShutDown, kTrainerKilled},
        {kStop},
        {kCut},
        {kPowerCut, kNodeLost, kNodeRestart},
        {kDiskBroken, kDiskFull, kDiskReadOnly, kBitRot},
        {kOriginDown, kOriginStalled, kOriginThrottled, kOriginLies},
        {kKeyRefused},
        {kGrant}};
    Prng& luck = schedule_.luck();
    for (const auto& group : groups) {
        const bool is_on = luck.below(2) == 0;
        for (const Fault fault : group) {
            const Duration every = schedule_.draw_scale(seconds{5}, seconds{200});
            if (luck.below(3) > 0 && is_on) {
                plan_.every.at(static_cast<std::size_t>(fault)) = every;
            }
        }
    }
}

void World::make_nodes() {
    Prng& luck = schedule_.luck();
    for (std::size_t i = 0; i < plan_.nodes; ++i) {
        Node& node = nodes_.emplace_back();
        node.name = fmt::format("node-{}", i);
        node.directory = fmt::format("{}/{}", folder_.path(), node.name);
        node.capacity = mib(24 + luck.below(64));
        node.disk = std::make_unique<test::FaultDevice>(luck());
        node.disk->set_capacity(node.capacity);
        node.view = std::make_unique<NodeView>(
            *node.disk, domain::data_folder(node.directory), dataset_->manifest().revision());
        node.grant.resident_bytes = draw_grant();
        // For the sockets of leaders; everything else is on the node's disk.
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
        job.steps_together = luck.below(2) == 0;
    }
}

void World::make_pods() {
    pods_.resize(plan_.pods);
    const auto window_kib = schedule_.draw_scale(Duration{256}, Duration{4096}).count();
    const Bytes window = kib(static_cast<std::uint64_t>(window_kib));
    for (std::size_t i = 0; i < pods_.size(); ++i) {
        configure(pods_[i], i);
        // Pods of one dataset may have other windows: a new leader may find more than its own holds.
        pods_[i].config.datasets[0].window_bytes =
            schedule_.draw_chance(0.2) ? Bytes{window.count() / 4} : window;
        if (script_) {
            follow_script(pods_[i]);
        }
        place(pods_[i], nodes_[i % nodes_.size()]);
    }
    for (Pod& pod : pods_) {
        pod.settings.ranks = pod.job->ranks;
        schedule_.run_in(
            schedule_.draw(Duration{}, seconds{3}), [this, &pod] { start_sidecar(pod); });
        // Some trainers come late: their sidecars have no session until then.
        const bool comes_late = schedule_.draw_chance(0.5) && !script_;
        const Duration latest = comes_late ? seconds{300} : seconds{3};
        schedule_.run_in(schedule_.draw(Duration{}, latest), [this, &pod] { start_trainer(pod); });
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
    data.step_aside_window = Duration{};  // it measures the real disk
    data.guest = !job.guest_of.empty();
    if (index > 0 && every(Fault::kKeyRefused) > Duration{} && luck.below(3) == 0) {
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
    pod.config.control.endpoint = script_->is_operated ? "operator:9443" : "";
    pod.settings.compute = seconds{1};
    pod.settings.batch = 8;
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

void World::say_plan() {
    schedule_.say(fmt::format(
        "seed {}: {} nodes, {} pods, {} jobs, {} samples, {} bytes, window {} bytes, origin {:.3f} "
        "s "
        "and {:.0f} kB/s, faults until {:.0f} s",
        seed_,
        plan_.nodes,
        plan_.pods,
        plan_.jobs,
        plan_.samples,
        dataset_->manifest().total_bytes().count(),
        pods_[0].config.datasets[0].window_bytes.count(),
        seconds_of(fair_.latency),
        fair_.bytes_per_second / 1000,
        seconds_of(plan_.faults_end)));
    for (const Node& node : nodes_) {
        schedule_.say(
            fmt::format("{}: grant {} bytes", node.name, node.grant.resident_bytes.count()));
    }
    for (const Pod& pod : pods_) {
        schedule_.say(fmt::format(
            "{} on {}: rank {} of {} of {}, contract {}{}{}{}",
            pod.settings.pod,
            pod.node->name,
            pod.settings.rank,
            pod.settings.ranks,
            pod.job->name,
            pod.job->contract,
            pod.job->guest_of.empty() ? "" : ", a guest of " + pod.job->guest_of,
            site_->keyless.contains(pod.settings.pod) ? " without a key" : "",
            pod.refused_at ? ", its key is refused" : ""));
    }
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
        if (plan_.every.at(i) > Duration{}) {
            schedule_.say(fmt::format(
                "fault on: {}, every {:.0f} s",
                to_string(static_cast<Fault>(i)),
                seconds_of(plan_.every.at(i))));
            schedule_fault(static_cast<Fault>(i));
        }
    }
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
            [this, &node](std::uint64_t sample) { return is_on_node(node, sample); }},
        name,
        pod.config,
        fmt::format("{}-boot-{}", node.name, node.boots));
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
            [this] { return faults_are_over_; },
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

// Whether the pod's trainer may begin the epoch of its progress.
bool World::may_begin(const Pod& pod) const {
    return !pod.job->steps_together || std::ranges::all_of(pods_, [&pod](const Pod& other) {
        return other.job != pod.job || other.progress.is_done ||
               other.progress.epoch >= pod.progress.epoch;
    });
}

// A few bytes, or up to half more than the dataset has.
Bytes World::draw_grant() {
    if (script_) {
        return script_->grant;
    }
    const std::uint64_t total = dataset_->manifest().total_bytes().count();
    return Bytes{
        schedule_.luck().below(schedule_.draw_chance(0.25) ? total / 20 + 1 : total * 3 / 2 + 1)};
}

// The kubelet starts it again after `away`.
void World::end_sidecar(Pod& pod, Duration away) {
    pod.sidecar.reset();
    schedule_.run_in(away, [this, &pod] { start_sidecar(pod); });
}

// Buries the dead: a process may have died in the last step.
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
