#include "tests/world/world.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "common/domain/node_directory.h"
#include "common/log/sink.h"

namespace stoker::world {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Operation = test::FaultDevice::Operation;

constexpr Duration kLookInterval = milliseconds{100};
constexpr Duration kSettled = seconds{2};  // after a grant or a change of leader
constexpr Duration kLivenessBound = seconds{900};
constexpr Duration kAnswerBound = seconds{15};
constexpr std::uint32_t kRefusalsMax = 40;  // eight, and what was in flight or queued then
constexpr std::uint64_t kStepsMax = 20'000'000;

constexpr std::array<std::string_view, kFaultKinds> kFaultNames = {
    "kill",
    "kill in change",
    "shut down",
    "stop",
    "cut",
    "trainer killed",
    "power cut",
    "disk broken",
    "disk full",
    "disk read-only",
    "bit rot",
    "origin down",
    "origin stalled",
    "origin throttled",
    "key refused",
    "grant"};

constexpr std::array kOperations = {
    Operation::kCreate,
    Operation::kOpen,
    Operation::kRead,
    Operation::kWrite,
    Operation::kTruncate,
    Operation::kAllocate,
    Operation::kSync,
    Operation::kMap,
    Operation::kUnlink,
    Operation::kRename,
    Operation::kList,
    Operation::kSpace};

std::string fields_text(std::initializer_list<log::Field> fields) {
    std::string text;
    for (const log::Field& field : fields) {
        text += fmt::format(" {}={}", field.key, field.value);
    }
    return text;
}

double seconds_of(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::string_view to_string(Fault fault) {
    return kFaultNames.at(static_cast<std::size_t>(fault));
}

World::World(std::uint64_t seed)
    : seed_(seed),
      schedule_(seed) {
    log::set_sink([this](log::Level level, std::string_view message, auto fields) {
        std::string text{message};
        text += fields_text(fields);
        schedule_.say(level >= log::Level::kWarning ? "warning: " + text : text);
    });
    schedule_.hide(folder_.path());
    schedule_.set_speaker("world");
    make_plan();
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
    log::set_sink(nullptr);
}

void World::make_plan() {
    Prng& luck = schedule_.luck();
    plan_.pods = 1 + luck.below(4);
    plan_.one_job = luck.below(2) == 0;
    plan_.windowed = luck.below(2) == 0;
    plan_.samples = plan_.pods * (8 + luck.below(80));
    plan_.sample_bytes_max = 1000 + luck.below(40'000);
    plan_.disk = mib(24 + luck.below(64));
    plan_.faults_end = schedule_.draw(seconds{300}, seconds{600});
    draw_faults();
    dataset_ = std::make_unique<test::Dataset>(
        test::Dataset::random(plan_.samples, plan_.sample_bytes_max, luck()));
    oracle_ = std::make_unique<Oracle>(schedule_, *dataset_);
    site_ = std::make_unique<OriginSite>(schedule_, *oracle_);
    disk_ = std::make_unique<test::FaultDevice>(luck());
    disk_->set_capacity(plan_.disk);
    view_ = std::make_unique<NodeView>(
        *disk_, domain::data_folder(folder_.path() + "/node"), dataset_->manifest().revision());
    site_->on_refused = [this](const std::string& pod, std::uint32_t in_row) {
        check_refusals(pod, in_row);
    };
    site_->is_on_node = [this](std::uint64_t sample) { return is_on_node(sample); };
    fair_.latency = schedule_.draw_scale(milliseconds{1}, milliseconds{300});
    fair_.bytes_per_second = std::pow(10.0, 5 + 3 * luck.unit());
    site_->weather = fair_;
    slowest_task_ = schedule_.draw_scale(microseconds{10}, milliseconds{200});
    schedule_.set_lag(schedule_.draw_scale(microseconds{10}, milliseconds{20}));
    grant_.resident_bytes =
        Bytes{luck.below(dataset_->manifest().total_bytes().count() * 3 / 2 + 1)};
}

// Each group of faults is on in half of the seeds, and two thirds of its kinds.
void World::draw_faults() {
    using enum Fault;
    const std::vector<std::vector<Fault>> groups = {
        {kKill, kKillInChange, kShutDown, kTrainerKilled},
        {kStop},
        {kCut},
        {kPowerCut},
        {kDiskBroken, kDiskFull, kDiskReadOnly, kBitRot},
        {kOriginDown, kOriginStalled, kOriginThrottled},
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

void World::make_pods() {
    const std::string control = domain::control_folder(folder_.path() + "/node");
    std::filesystem::create_directories(control);  // for the leader's socket
    std::filesystem::create_directories(domain::guests_folder(folder_.path() + "/node"));
    pods_.resize(plan_.pods);
    const auto window_kib = schedule_.draw_scale(Duration{256}, Duration{4096}).count();
    const Bytes window = kib(static_cast<std::uint64_t>(window_kib));
    for (std::size_t i = 0; i < pods_.size(); ++i) {
        configure(pods_[i], i);
        pods_[i].config.datasets[0].window_bytes = window;
    }
    for (Pod& pod : pods_) {
        schedule_.run_in(
            schedule_.draw(Duration{}, seconds{3}), [this, &pod] { start_sidecar(pod); });
        // Some trainers come late: their sidecars have no session until then.
        const Duration latest = schedule_.draw_chance(0.3) ? seconds{200} : seconds{3};
        schedule_.run_in(schedule_.draw(Duration{}, latest), [this, &pod] { start_trainer(pod); });
    }
}

void World::configure(Pod& pod, std::size_t index) {
    Prng& luck = schedule_.luck();
    const std::string job = plan_.one_job ? "job" : fmt::format("job-{}", index);
    pod.config.job.pod = fmt::format("pod-{}", index);
    pod.config.job.training_job_uid = job;
    pod.config.job.attempt_uid = job + "/1";
    pod.config.socket_path = fmt::format("{}/{}.sock", folder_.path(), pod.config.job.pod);
    pod.config.io_threads = 1 + static_cast<std::uint32_t>(luck.below(3));
    sidecar::DatasetConfig& data = pod.config.datasets.emplace_back();
    data.name = data.uid = "train";
    data.directory = folder_.path() + "/node";
    data.client_directory = domain::data_folder(data.directory);
    data.memory_bytes = kib(64 + luck.below(4096));
    data.readahead_bytes = kib(16 + luck.below(1024));
    data.max_in_flight = 1 + static_cast<std::uint32_t>(luck.below(16));
    data.reserved_free = luck.below(2) == 0 ? 0 : 0.1;
    data.step_aside_window = Duration{};  // it measures the real disk
    pod.settings.name = fmt::format("trainer-{}", index);
    pod.settings.pod = pod.config.job.pod;
    pod.settings.socket_path = pod.config.socket_path;
    pod.settings.data_folder = data.client_directory;
    pod.settings.contract = plan_.windowed ? "windowed" : "exact";
    pod.settings.job = "stream";
    pod.settings.seed = plan_.one_job ? 7 : 7 + index;
    pod.settings.rank = plan_.one_job ? static_cast<std::uint32_t>(index) : 0;
    pod.settings.ranks = plan_.one_job ? static_cast<std::uint32_t>(plan_.pods) : 1;
    pod.settings.batch = 1 + static_cast<std::uint32_t>(luck.below(16));
    pod.settings.compute = schedule_.draw_scale(milliseconds{100}, seconds{3});
    pod.settings.looks_ahead = luck.below(2) == 0;
}

void World::say_plan() {
    schedule_.say(fmt::format(
        "seed {}: {} pods, {}, contract {}, {} samples, {} bytes, grant {} bytes, window {} bytes, "
        "origin {:.3f} s and {:.0f} kB/s, faults until {:.0f} s",
        seed_,
        plan_.pods,
        plan_.one_job ? "one job" : "a job each",
        pods_[0].settings.contract,
        plan_.samples,
        dataset_->manifest().total_bytes().count(),
        grant_.resident_bytes.count(),
        pods_[0].config.datasets[0].window_bytes.count(),
        seconds_of(fair_.latency),
        fair_.bytes_per_second / 1000,
        seconds_of(plan_.faults_end)));
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
        if (plan_.every.at(i) > Duration{}) {
            schedule_.say(fmt::format(
                "fault on: {}, every {:.0f} s", kFaultNames.at(i), seconds_of(plan_.every.at(i))));
            schedule_fault(static_cast<Fault>(i));
        }
    }
}

void World::start_sidecar(Pod& pod) {
    if (pod.sidecar != nullptr || !std::filesystem::exists(folder_.path())) {
        return;
    }
    const std::string name = fmt::format("sidecar-{}#{}", &pod - pods_.data(), ++pod.starts);
    pod.config.datasets[0].grant_bytes = grant_.resident_bytes;
    pod.started_at = schedule_.now();
    pod.sidecar = std::make_unique<SidecarProcess>(
        NodeParts{schedule_, *oracle_, *site_, *disk_, slowest_task_},
        name,
        pod.config,
        fmt::format("boot-{}", boots_));
}

void World::start_trainer(Pod& pod) {
    if (pod.trainer == nullptr && !pod.progress.is_done) {
        schedule_.set_speaker(pod.settings.name);
        schedule_.say("starts");
        pod.trainer = std::make_unique<Trainer>(
            schedule_,
            pod.settings,
            *disk_,
            *site_,
            *oracle_,
            pod.progress,
            TrainerCallbacks{
                [this] { return faults_are_over_; },
                [this, &pod] { check_welcome(pod); },
                [this, &pod] { check_loss(pod); },
                [this] { check_unreadable(); }});
    }
}

// A fault of the disk, of connections or of the whole node: its effects may be felt for a minute
// after its end.
Duration World::note_rough(Duration lasts) {
    rough_until_ = std::max(rough_until_, schedule_.now() + lasts + seconds{60});
    shaken_until_ = std::max(shaken_until_, schedule_.now() + lasts + seconds{10});
    return lasts;
}

// The kubelet starts it again after `away`.
void World::end_sidecar(Pod& pod, Duration away) {
    pod.sidecar.reset();
    schedule_.run_in(away, [this, &pod] { start_sidecar(pod); });
}

Duration World::some_time() {
    return schedule_.draw_scale(milliseconds{100}, seconds{30});
}

void World::schedule_fault(Fault fault) {
    const double mean = seconds_of(plan_.every.at(static_cast<std::size_t>(fault)));
    const double wait = -mean * std::log(1 - schedule_.luck().unit());
    schedule_.run_in(Duration{static_cast<Duration::rep>(wait * 1e9)}, [this, fault] {
        if (!faults_are_over_) {
            inject(fault);
            schedule_fault(fault);
        }
    });
}

void World::inject(Fault fault) {
    Pod& pod = pods_[schedule_.luck().below(pods_.size())];
    if (fault <= Fault::kCut) {
        if (pod.sidecar == nullptr) {
            return;
        }
        const std::string role = pod.sidecar->role();
        if (hit_sidecar(fault, pod)) {
            ++faults_;
            ++oracle_->counts[fmt::format("fault: {}, {}", to_string(fault), role)];
        }
        return;
    }
    if (fault == Fault::kTrainerKilled) {
        if (pod.trainer == nullptr || pod.progress.is_done) {
            return;
        }
        schedule_.say(fmt::format("kills {}", pod.trainer->name()));
        pod.trainer->drop_sockets();
        pod.trainer.reset();
        schedule_.run_in(some_time(), [this, &pod] { start_trainer(pod); });
    } else if (fault == Fault::kKeyRefused) {
        schedule_.say(fmt::format("the origin refuses the key of {}", pod.settings.pod));
        site_->weather.refused.insert(pod.settings.pod);
        pod.refused_at = pod.refused_at.value_or(schedule_.now());
        schedule_.run_in(note_rough(some_time()), [this, &pod] {
            schedule_.say(fmt::format("the origin accepts the key of {}", pod.settings.pod));
            site_->weather.refused.erase(pod.settings.pod);
            pod.refused_at.reset();
        });
    } else if (fault == Fault::kBitRot) {
        if (!rot()) {
            return;
        }
    } else {
        hit_node(fault);
    }
    ++faults_;
    ++oracle_->counts[fmt::format("fault: {}", to_string(fault))];
}

bool World::hit_sidecar(Fault fault, Pod& pod) {
    SidecarProcess& sidecar = *pod.sidecar;
    const std::string who = fmt::format("{} ({})", sidecar.name(), sidecar.role());
    const bool is_stopped = sidecar.is_stopped();
    switch (fault) {
        case Fault::kKill:
            schedule_.say("kills " + who);
            sidecar.kill();
            return true;
        case Fault::kKillInChange:
            schedule_.say("lets a change of the disk kill " + who);
            sidecar.kill_in_change(schedule_.luck().below(20));
            return true;
        case Fault::kShutDown:
            if (is_stopped) {
                return false;
            }
            schedule_.say("shuts down " + who);
            end_sidecar(pod, some_time());
            return true;
        case Fault::kStop:
            if (is_stopped) {
                return false;
            }
            schedule_.say("stops " + who);
            sidecar.stop();
            schedule_.run_in(note_rough(some_time()), [this, &pod, starts = pod.starts] {
                if (pod.sidecar != nullptr && pod.starts == starts && !pod.sidecar->is_dead()) {
                    schedule_.say("lets go on " + pod.sidecar->name());
                    pod.ran_at = schedule_.now();
                    pod.sidecar->go_on();
                }
            });
            return true;
        default:
            schedule_.say("cuts a connection of " + who);
            note_rough(Duration{});
            return sidecar.cut_connection();
    }
}

void World::hit_node(Fault fault) {
    OriginSite::Weather& weather = site_->weather;
    const auto until_over = [this](const char* what, auto mend) {
        schedule_.say(what);
        schedule_.run_in(note_rough(some_time()), [this, what, mend] {
            schedule_.say(fmt::format("no longer: {}", what));
            mend();
        });
    };
    switch (fault) {
        case Fault::kPowerCut:
            cut_power();
            break;
        case Fault::kDiskBroken:
            break_disk();
            break;
        case Fault::kDiskFull:
            disk_->set_capacity(Bytes{plan_.disk.count() / (2 + schedule_.luck().below(40))});
            until_over("the disk is smaller", [this] { disk_->set_capacity(plan_.disk); });
            break;
        case Fault::kDiskReadOnly:
            disk_->set_read_only(true);
            until_over("the disk is read-only", [this] { disk_->set_read_only(false); });
            break;
        case Fault::kOriginDown:
            weather.failing = 1;
            until_over("the origin is down", [&weather] { weather.failing = 0; });
            break;
        case Fault::kOriginStalled:
            weather.is_stalled = true;
            until_over("the origin stalls", [&weather] { weather.is_stalled = false; });
            break;
        case Fault::kOriginThrottled:
            weather.failing = schedule_.luck().unit();
            weather.latency = 5 * fair_.latency;
            until_over("the origin throttles", [this, &weather] {
                weather.failing = 0;
                weather.latency = fair_.latency;
            });
            break;
        default:
            grant_.resident_bytes =
                Bytes{schedule_.luck().below(dataset_->manifest().total_bytes().count() * 3 / 2)};
            granted_at_ = schedule_.now();
            schedule_.say(fmt::format("grants {} bytes", grant_.resident_bytes.count()));
            for (Pod& pod : pods_) {
                if (pod.sidecar != nullptr && !pod.sidecar->is_dead()) {
                    pod.sidecar->set_grant(grant_);
                }
            }
    }
}

void World::break_disk() {
    const std::size_t which = schedule_.luck().below(kOperations.size());
    constexpr std::array names = {
        "create",
        "open",
        "read",
        "write",
        "truncate",
        "allocate",
        "sync",
        "map",
        "unlink",
        "rename",
        "list",
        "space"};
    schedule_.say(fmt::format("the disk fails every {}", names.at(which)));
    disk_->set_broken(kOperations.at(which), true);
    ++unreadable_;
    schedule_.run_in(note_rough(some_time()), [this, which] {
        schedule_.say("the disk works again");
        --unreadable_;
        disk_->set_broken(kOperations.at(which), false);
    });
}

bool World::rot() {
    std::vector<std::string> segments;
    for (const std::string& path : disk_->paths()) {
        if (path.ends_with(".seg") && disk_->content(path)->size() > 0) {
            segments.push_back(path);
        }
    }
    if (segments.empty()) {
        return false;
    }
    has_rotted_ = true;
    Prng& luck = schedule_.luck();
    const std::string& path = segments[luck.below(segments.size())];
    schedule_.say("a bit rots in " + path.substr(folder_.path().size()));
    disk_->flip_bit(
        path, luck.below(disk_->content(path)->size()), static_cast<unsigned>(luck.below(8)));
    return true;
}

void World::cut_power() {
    schedule_.say("the power is cut");
    const Duration away = note_rough(some_time());
    for (Pod& pod : pods_) {
        if (pod.sidecar != nullptr) {
            pod.sidecar->kill();
            end_sidecar(pod, away + schedule_.draw(Duration{}, seconds{5}));
        }
        if (pod.trainer != nullptr && !pod.progress.is_done) {
            pod.trainer->drop_sockets();
            pod.trainer.reset();
            schedule_.run_in(away + schedule_.draw(Duration{}, seconds{5}), [this, &pod] {
                start_trainer(pod);
            });
        }
    }
    disk_->power_cut();
    ++boots_;
}

// Ends every fault; what was killed starts again by itself.
void World::heal() {
    schedule_.say("no more faults");
    faults_are_over_ = true;
    site_->weather = fair_;
    disk_->set_capacity(plan_.disk);
    disk_->set_read_only(false);
    for (const Operation operation : kOperations) {
        disk_->set_broken(operation, false);
    }
    for (Pod& pod : pods_) {
        if (pod.sidecar != nullptr && !pod.sidecar->is_dead()) {
            pod.sidecar->go_on();
        }
    }
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

void World::look() {
    std::size_t holders = 0;
    for (Pod& pod : pods_) {
        if (pod.sidecar != nullptr && pod.sidecar->holds_lock()) {
            ++holders;
            pod.has_led = true;
            if (std::exchange(leader_, pod.sidecar->name()) != pod.sidecar->name()) {
                leader_since_ = schedule_.now();
            }
            check_room(pod);
            if (++looks_ % 16 == 0) {
                check_table(pod);
            }
        }
        check_wait(pod);
        check_error(pod);
    }
    check_leader(holders > 0);
    if (holders > 1) {
        oracle_->accuse("two processes hold the lock of the directory");
    }
    schedule_.run_in(kLookInterval, [this] { look(); });
}

// A sidecar takes a free lock soon.
void World::check_leader(bool is_led) {
    const bool can_lead = std::ranges::any_of(pods_, [this](const Pod& pod) {
        return pod.sidecar != nullptr && schedule_.now() - pod.started_at > kSettled;
    });
    if (is_led || !can_lead || !is_calm()) {
        led_at_ = schedule_.now();
    } else if (schedule_.now() - led_at_ > kSettled) {
        oracle_->accuse("nobody takes the free lock of the directory");
    }
}

// Every sample in the table of a leader is readable, also after a power cut.
void World::check_table(Pod& pod) {
    const sidecar::Leader* leader = pod.sidecar->leader();
    if (leader == nullptr || leader->state() != control::ManifestState::kReady || unreadable_ > 0 ||
        has_rotted_) {
        return;
    }
    NodeView view{*disk_, pod.settings.data_folder, dataset_->manifest().revision()};
    for (std::uint64_t id = 0; id < plan_.samples; ++id) {
        const auto bytes = view.read(id);
        if (view.is_present(id) && !bytes) {
            oracle_->accuse(fmt::format(
                "{} publishes sample {}, which cannot be read", pod.sidecar->name(), id));
        } else if (bytes && *bytes != oracle_->payload(id)) {
            oracle_->accuse(
                fmt::format("{} publishes other bytes for sample {}", pod.sidecar->name(), id));
        }
    }
}

// A trainer's session outlives every other sidecar.
void World::check_loss(const Pod& pod) {
    const bool is_ours = pod.sidecar == nullptr || pod.sidecar->is_dead() ||
                         schedule_.now() - pod.started_at < kSettled;
    if (!is_ours && is_calm()) {
        oracle_->accuse(fmt::format(
            "{} lost its session at {}, which was well", pod.settings.name, pod.sidecar->name()));
    }
}

// It has run and was not stopped since then.
bool World::is_well(const Pod& pod, Duration since) const {
    return pod.sidecar != nullptr && !pod.sidecar->is_dead() && !pod.sidecar->is_stopped() &&
           schedule_.now() - std::max(pod.started_at, pod.ran_at) > since;
}

// A pod whose key was never accepted gets nothing of the node's cache.
void World::check_welcome(const Pod& pod) {
    const bool is_proven = plan_.one_job || pod.has_led || !pod.refused_at ||
                           *pod.refused_at > pod.started_at || pod.sidecar->leader() != nullptr;
    if (!is_proven) {
        oracle_->accuse(pod.settings.name + " is served, but its pod's key is refused");
    }
}

// A sidecar that is well answers soon, whatever happens to the others; the origin has to be well.
void World::check_wait(const Pod& pod) {
    const OriginSite::Weather& weather = site_->weather;
    if (weather.failing > 0 || weather.is_stalled || !weather.refused.empty() ||
        site_->backlog() > seconds{1}) {
        fair_since_ = schedule_.now();
    }
    const bool is_fair = schedule_.now() - fair_since_ > seconds{60};
    if (is_fair && is_well(pod, kAnswerBound) && pod.trainer != nullptr &&
        pod.trainer->waits_for() > kAnswerBound) {
        oracle_->accuse(fmt::format(
            "{} has waited {:.0f} s for an answer of {}, which is well",
            pod.settings.name,
            seconds_of(pod.trainer->waits_for()),
            pod.sidecar->name()));
    }
}

// A leader that is well can be followed.
void World::check_error(const Pod& pod) {
    const auto leads = std::ranges::find_if(
        pods_, [](const Pod& other) { return other.sidecar && other.sidecar->leader(); });
    if (schedule_.now() < shaken_until_ || leads == pods_.end() || leads->sidecar == pod.sidecar ||
        !is_well(*leads, kAnswerBound) || !is_well(pod, kAnswerBound) ||
        schedule_.now() - leader_since_ < kAnswerBound || pod.sidecar->error().empty()) {
        return;
    }
    oracle_->accuse(fmt::format(
        "{} cannot follow {}, and both are well: {}",
        pod.sidecar->name(),
        leads->sidecar->name(),
        pod.sidecar->error()));
}

// What a leader has fetched for a client stays readable while the client holds it.
void World::check_unreadable() {
    if (is_calm() && !has_rotted_ && schedule_.now() - leader_since_ > seconds{5}) {
        oracle_->accuse("a fetched sample cannot be read");
    }
}

// A leader whose key is refused lets another sidecar lead.
void World::check_refusals(const std::string& pod, std::uint32_t in_row) {
    const bool has_others = std::ranges::any_of(pods_, [&](const Pod& other) {
        return other.settings.pod != pod && is_well(other, seconds{10});
    });
    if (has_others && in_row > kRefusalsMax) {
        oracle_->accuse(fmt::format(
            "the sidecar of {} leads on after {} refused fetches in a row", pod, in_row));
    }
}

bool World::is_on_node(std::uint64_t sample) {
    if (!is_calm() || has_rotted_) {
        return false;
    }
    view_->refresh();
    return view_->read(sample).has_value();
}

void World::check_room(Pod& pod) {
    const sidecar::Leader* leader = pod.sidecar->leader();
    const bool is_new = schedule_.now() - granted_at_ < kSettled;
    if (leader == nullptr || leader->state() != control::ManifestState::kReady || is_new) {
        return;
    }
    const sidecar::LeaderStatus status = leader->status();
    if (status.bytes.resident > grant_.resident_bytes) {
        oracle_->accuse(fmt::format(
            "{} keeps {} bytes, the grant is {}",
            pod.sidecar->name(),
            status.bytes.resident.count(),
            grant_.resident_bytes.count()));
    }
    const Bytes window = pod.config.datasets[0].window_bytes;
    if (status.bytes.window > window) {
        oracle_->accuse(fmt::format(
            "{} holds {} bytes in a window of {}",
            pod.sidecar->name(),
            status.bytes.window.count(),
            window.count()));
    }
}

bool World::is_over() const {
    return std::ranges::all_of(pods_, [](const Pod& pod) { return pod.progress.is_done; });
}

Outcome World::run() {
    schedule_.run_in(plan_.faults_end, [this] { heal(); });
    look();
    const TimePoint end = schedule_.now() + plan_.faults_end + kLivenessBound;
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
        oracle_->counts,
        schedule_.log()};
}

}  // namespace stoker::world
