// The faults of the world.
#include <cmath>

#include <fmt/format.h>

#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Operation = test::FaultDevice::Operation;

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

struct NamedOperation {
    Operation operation;
    std::string_view name;
};

constexpr std::array kOperations = {
    NamedOperation{Operation::kCreate, "create"},
    NamedOperation{Operation::kOpen, "open"},
    NamedOperation{Operation::kRead, "read"},
    NamedOperation{Operation::kWrite, "write"},
    NamedOperation{Operation::kTruncate, "truncate"},
    NamedOperation{Operation::kAllocate, "allocate"},
    NamedOperation{Operation::kSync, "sync"},
    NamedOperation{Operation::kMap, "map"},
    NamedOperation{Operation::kUnlink, "unlink"},
    NamedOperation{Operation::kRename, "rename"},
    NamedOperation{Operation::kList, "list"},
    NamedOperation{Operation::kSpace, "space"}};

}  // namespace

std::string_view to_string(Fault fault) {
    return kFaultNames.at(static_cast<std::size_t>(fault));
}

// A fault of the disk, of connections or of the whole node: its effects may be felt for a minute
// after its end.
Duration World::note_rough(Duration lasts) {
    rough_until_ = std::max(rough_until_, schedule_.now() + lasts + seconds{60});
    shaken_until_ = std::max(shaken_until_, schedule_.now() + lasts + seconds{10});
    return lasts;
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
        refuse_key(pod);
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

void World::refuse_key(Pod& pod) {
    schedule_.say(fmt::format("the origin refuses the key of {}", pod.settings.pod));
    site_->weather.refused.insert(pod.settings.pod);
    pod.refused_at = pod.refused_at.value_or(schedule_.now());
    const Duration lasts = note_rough(some_time());
    pod.refused_until = std::max(pod.refused_until, schedule_.now() + lasts);
    schedule_.run_in(lasts, [this, &pod] {
        if (pod.refused_at && schedule_.now() >= pod.refused_until) {
            accept_key(pod);
        }
    });
}

void World::accept_key(Pod& pod) {
    schedule_.say(fmt::format("the origin accepts the key of {}", pod.settings.pod));
    site_->weather.refused.erase(pod.settings.pod);
    pod.refused_at.reset();
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
                if (pod.starts == starts) {
                    let_go_on(pod);
                }
            });
            return true;
        default:
            schedule_.say("cuts a connection of " + who);
            note_rough(Duration{});
            return sidecar.cut_connection();
    }
}

// Ends a stop; does nothing unless the pod's sidecar is stopped.
void World::let_go_on(Pod& pod) {
    if (pod.sidecar != nullptr && !pod.sidecar->is_dead() && pod.sidecar->is_stopped()) {
        schedule_.say("lets go on " + pod.sidecar->name());
        pod.ran_at = schedule_.now();
        pod.sidecar->go_on();
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
            old_grants_.emplace_back(schedule_.now(), grant_.resident_bytes);
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
    const auto& [operation, name] = kOperations.at(schedule_.luck().below(kOperations.size()));
    schedule_.say(fmt::format("the disk fails every {}", name));
    disk_->set_broken(operation, true);
    ++unreadable_;
    schedule_.run_in(note_rough(some_time()), [this, broken = operation] {
        schedule_.say("the disk works again");
        --unreadable_;
        disk_->set_broken(broken, false);
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
    for (const auto& [operation, name] : kOperations) {
        disk_->set_broken(operation, false);
    }
    for (Pod& pod : pods_) {
        let_go_on(pod);
        if (pod.refused_at) {
            accept_key(pod);
        }
    }
}

}  // namespace stoker::world
