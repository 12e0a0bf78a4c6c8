// The faults of the world.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Operation = test::FaultDevice::Operation;

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

// Notes that effects of a fault may be felt for a minute after its end: on `node`, or on all nodes
// (nullptr: a fault of the origin).
Duration World::note_rough(Node* node, Duration lasts) {
    for (Node& one : nodes_) {
        if (node == nullptr || node == &one) {
            one.rough_until = std::max(one.rough_until, schedule_.now() + lasts + seconds{60});
            one.shaken_until = std::max(one.shaken_until, schedule_.now() + lasts + seconds{10});
        }
    }
    return lasts;
}

Duration World::some_time() {
    return schedule_.draw_scale(milliseconds{100}, seconds{30});
}

void World::schedule_fault(Fault fault) {
    const double mean = seconds_of(every(fault));
    const double wait = -mean * std::log(1 - schedule_.luck().unit());
    schedule_.run_in(Duration{static_cast<Duration::rep>(wait * 1e9)}, [this, fault] {
        if (!faults_are_over_) {
            inject(fault, pods_[schedule_.luck().below(pods_.size())]);
            schedule_fault(fault);
        }
    });
}

// False: the fault can have no effect there now.
bool World::hit(Fault fault, Pod& pod) {
    switch (fault) {
        case Fault::kTrainerKilled:
            return kill_trainer(pod);
        case Fault::kKeyRefused:
            refuse_key(pod, some_time());
            return true;
        case Fault::kPowerCut:
        case Fault::kNodeLost:
        case Fault::kNodeRestart:
            return hit_machine(fault, *pod.node);
        case Fault::kBitRot:
        case Fault::kDiskBroken:
        case Fault::kDiskFull:
        case Fault::kDiskReadOnly:
            return hit_disk(fault, *pod.node);
        case Fault::kOriginDown:
        case Fault::kOriginStalled:
        case Fault::kOriginThrottled:
        case Fault::kOriginLies:
            return hit_origin(fault);
        case Fault::kGrant:
            return change_grant(*pod.node);
        default:
            return fault >= Fault::kLinkCut ? hit_peers(fault, pod)
                                            : pod.sidecar != nullptr && hit_sidecar(fault, pod);
    }
}

bool World::kill_trainer(Pod& pod) {
    if (pod.trainer == nullptr || pod.progress.is_done) {
        return false;
    }
    schedule_.say(fmt::format("kills {}", pod.trainer->name()));
    pod.trainer->drop_sockets();
    pod.trainer.reset();
    schedule_.run_in(some_time(), [this, &pod] { start_trainer(pod); });
    return true;
}

void World::refuse_key(Pod& pod, Duration lasts) {
    schedule_.say(fmt::format("the origin refuses the key of {}", pod.settings.pod));
    site_->weather.refused.insert(pod.settings.pod);
    pod.refused_at = pod.refused_at.value_or(schedule_.now());
    note_rough(pod.node, lasts);
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
    pod.refused_until = schedule_.now();
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
            stop(pod, some_time());
            return true;
        default:
            if (!sidecar.cut_connection()) {
                return false;
            }
            schedule_.say("cuts a connection of " + who);
            note_rough(pod.node, Duration{});
            return true;
    }
}

void World::stop(Pod& pod, Duration lasts) {
    schedule_.say(fmt::format("stops {} ({})", pod.sidecar->name(), pod.sidecar->role()));
    pod.sidecar->stop();
    schedule_.run_in(note_rough(pod.node, lasts), [this, &pod, starts = pod.starts] {
        if (pod.starts == starts) {
            let_go_on(pod);
        }
    });
}

// Ends a stop; does nothing unless the pod's sidecar is stopped.
void World::let_go_on(Pod& pod) {
    if (pod.sidecar != nullptr && !pod.sidecar->is_dead() && pod.sidecar->is_stopped()) {
        schedule_.say("lets go on " + pod.sidecar->name());
        pod.ran_at = schedule_.now();
        pod.sidecar->go_on();
    }
}

bool World::hit_disk(Fault fault, Node& node) {
    if (fault == Fault::kBitRot) {
        return rot(node);
    }
    if (fault == Fault::kDiskBroken) {
        break_disk(node);
        return true;
    }
    const bool is_full = fault == Fault::kDiskFull;
    if (is_full) {
        node.disk->set_capacity(Bytes{node.capacity.count() / (2 + schedule_.luck().below(40))});
    } else {
        node.disk->set_read_only(true);
    }
    schedule_.say(
        fmt::format("the disk of {} is {}", node.name, is_full ? "smaller" : "read-only"));
    schedule_.run_in(note_rough(&node, some_time()), [this, &node, is_full] {
        schedule_.say(fmt::format(
            "the disk of {} is no longer {}", node.name, is_full ? "smaller" : "read-only"));
        if (is_full) {
            node.disk->set_capacity(node.capacity);
        } else {
            node.disk->set_read_only(false);
        }
    });
    return true;
}

bool World::hit_origin(Fault fault) {
    OriginSite::Weather& weather = site_->weather;
    const auto until_over = [this](const char* what, auto mend) {
        schedule_.say(what);
        schedule_.run_in(note_rough(nullptr, some_time()), [this, what, mend] {
            schedule_.say(fmt::format("no longer: {}", what));
            mend();
        });
    };
    if (fault == Fault::kOriginDown) {
        weather.failing = 1;
        until_over("the origin is down", [&weather] { weather.failing = 0; });
    } else if (fault == Fault::kOriginStalled) {
        weather.is_stalled = true;
        until_over("the origin stalls", [&weather] { weather.is_stalled = false; });
    } else if (fault == Fault::kOriginLies) {
        weather.lying = schedule_.luck().unit();
        until_over("the origin lies", [&weather] { weather.lying = 0; });
    } else {
        weather.failing = schedule_.luck().unit();
        weather.latency = 5 * fair_.latency;
        until_over("the origin throttles", [this, &weather] {
            weather.failing = 0;
            weather.latency = fair_.latency;
        });
    }
    return true;
}

bool World::change_grant(Node& node) {
    set_grant(node, {draw_grant(), std::nullopt});
    return true;
}

void World::break_disk(Node& node) {
    const auto& [operation, name] = kOperations.at(schedule_.luck().below(kOperations.size()));
    break_disk(node, operation, name);
}

void World::break_disk(Node& node, Operation operation, std::string_view name) {
    schedule_.say(fmt::format("the disk of {} fails every {}", node.name, name));
    node.disk->set_broken(operation, true);
    ++node.unreadable;
    schedule_.run_in(note_rough(&node, some_time()), [this, &node, operation] {
        schedule_.say(fmt::format("the disk of {} works again", node.name));
        --node.unreadable;
        node.disk->set_broken(operation, false);
    });
}

bool World::rot(Node& node) {
    std::vector<std::string> segments;
    for (const std::string& path : node.disk->paths()) {
        if (path.ends_with(".seg") && node.disk->content(path)->size() > 0) {
            segments.push_back(path);
        }
    }
    if (segments.empty()) {
        return false;
    }
    node.has_rotted = true;
    Prng& luck = schedule_.luck();
    const std::string& path = segments[luck.below(segments.size())];
    schedule_.say("a bit rots in " + path.substr(folder_.path().size()));
    const std::uint64_t byte = luck.below(node.disk->content(path)->size());
    node.disk->flip_bit(path, byte, static_cast<unsigned>(luck.below(8)));
    return true;
}

// The nodes with power, except this one.
std::vector<World::Node*> World::others_than(const Node& node) {
    std::vector<Node*> others;
    for (Node& other : nodes_) {
        if (&other != &node && !other.is_lost && schedule_.now() >= other.on_at) {
            others.push_back(&other);
        }
    }
    return others;
}

bool World::hit_machine(Fault fault, Node& node) {
    if (fault == Fault::kPowerCut) {
        schedule_.say(fmt::format("the power of {} is cut", node.name));
        switch_off(node, fault, note_rough(&node, some_time()));
        return true;
    }
    if (fault == Fault::kNodeRestart) {
        schedule_.say(fmt::format("{} shuts down and starts again", node.name));
        switch_off(node, fault, note_rough(&node, some_time()));
        return true;
    }
    const std::vector<Node*> others = others_than(node);
    if (others.empty()) {
        return false;
    }
    const bool is_for_ever = schedule_.draw_chance(0.3);
    schedule_.say(fmt::format("{} is lost{}", node.name, is_for_ever ? " for ever" : ""));
    node.is_lost = true;
    const Duration away = schedule_.draw(seconds{20}, seconds{300});
    switch_off(node, fault, note_rough(&node, away));
    schedule_.set_speaker("world");
    for (Pod& pod : pods_) {
        if (pod.node == &node) {
            Node& other = *others[schedule_.luck().below(others.size())];
            place(pod, other);
            schedule_.say(fmt::format("{} moves to {}", pod.settings.pod, other.name));
            note_rough(&other, Duration{});
        }
    }
    if (!is_for_ever) {
        schedule_.run_in(away, [this, &node] {
            schedule_.say(node.name + " is back");
            node.is_lost = false;
        });
    }
    return true;
}

// Ends all processes of the node. Pods that are not moved to another node start again after `away`.
void World::switch_off(Node& node, Fault fault, Duration away) {
    const bool is_orderly = fault == Fault::kNodeRestart;
    node.on_at = std::max(node.on_at, schedule_.now() + away);
    if (!is_orderly && network_ != nullptr) {
        network_->lose_node(node.name);
    }
    for (Pod& pod : pods_) {
        if (pod.node != &node) {
            continue;
        }
        const Duration later = fault == Fault::kNodeLost
                                   ? schedule_.draw(seconds{1}, seconds{60})
                                   : away + schedule_.draw(Duration{}, seconds{5});
        if (pod.sidecar != nullptr) {
            if (!is_orderly || pod.sidecar->is_stopped()) {
                pod.sidecar->kill();
            }
            end_sidecar(pod, later);
        }
        if (pod.trainer != nullptr && !pod.progress.is_done) {
            pod.trainer->drop_sockets();
            pod.trainer.reset();
            schedule_.run_in(later, [this, &pod] { start_trainer(pod); });
        }
    }
    if (is_orderly) {
        node.disk->sync_all();
    } else {
        node.disk->power_cut();
    }
    ++node.boots;
}

// Ends every fault; killed processes start again by themselves.
void World::heal() {
    schedule_.say("no more faults");
    faults_are_over_ = true;
    site_->weather = fair_;
    for (Node& node : nodes_) {
        node.disk->set_capacity(node.capacity);
        node.disk->set_read_only(false);
        for (const auto& [operation, name] : kOperations) {
            node.disk->set_broken(operation, false);
        }
    }
    for (Pod& pod : pods_) {
        let_go_on(pod);
        if (pod.refused_at) {
            accept_key(pod);
        }
    }
    give_keys();
    heal_peers();
}

// Gives a key to each guest without one that can never be served; the other guests stay without a
// key.
void World::give_keys() {
    for (Pod& pod : pods_) {
        if (site_->keyless.contains(pod.settings.pod) && !can_serve_guest(pod)) {
            site_->keyless.erase(pod.settings.pod);
            pod.keyed_at = schedule_.now();
            schedule_.say(pod.settings.pod + " gets a key of its own");
        }
    }
}

}  // namespace stoker::world
