// The situations in which faults meet sidecars, and faults that wait for one: those at random times
// hardly meet situations that last a few steps of a loop. Half of the seeds aim; the others run as if
// there were no aims.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::seconds;

constexpr Duration kAimsFor = seconds{30};

}  // namespace

// Notes the situation of the sidecars that the fault meets: the pod's, else all of the node, else all.
void World::count(Fault fault, Node* node, const Pod* pod) {
    auto& row = table_.at(static_cast<std::size_t>(fault));
    for (const Pod& one : pods_) {
        const bool is_met = pod != nullptr ? pod == &one : node == nullptr || node == one.node;
        if (is_met && one.sidecar != nullptr && !one.sidecar->is_dead()) {
            ++row.at(static_cast<std::size_t>(situation_of(one)));
            row.at(static_cast<std::size_t>(Situation::kInGroup)) += is_in_group(one) ? 1 : 0;
        }
    }
}

// False: it could do nothing.
bool World::inject(Fault fault, Pod& pod) {
    const FaultTable before = table_;
    const bool is_pods = fault <= Fault::kTrainerKilled || fault == Fault::kKeyRefused ||
                         fault >= Fault::kPeersRefused;
    const bool is_origins = fault >= Fault::kOriginDown && fault <= Fault::kOriginLies;
    count(fault, is_origins ? nullptr : pod.node, is_pods ? &pod : nullptr);
    if (!hit(fault, pod)) {
        table_ = before;
        return false;
    }
    ++faults_;
    timeline_.on_fault(
        schedule_.passed(), is_origins ? "origin" : pod.node->name, to_string(fault));
    ++oracle_->counts[fmt::format("fault: {}", to_string(fault))];
    return true;
}

// Every second kind of fault that is on aims, besides what it does at random times.
void World::draw_aims() {
    if (script_ || aims_chance_.below(2) == 0) {
        return;
    }
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
        if (plan_.every.at(i) > Duration{} && aims_chance_.below(2) == 0) {
            schedule_aim(static_cast<Fault>(i));
        }
    }
}

// The next aim of the fault, at a situation that is drawn.
void World::schedule_aim(Fault fault) {
    const double wait = -seconds_of(every(fault)) * std::log(1 - aims_chance_.unit());
    schedule_.run_in(Duration{static_cast<Duration::rep>(wait * 1e9)}, [this, fault] {
        if (faults_are_over_) {
            return;
        }
        const auto situation = static_cast<Situation>(aims_chance_.below(kSituations));
        aims_.push_back({fault, situation, schedule_.now() + kAimsFor});
        schedule_.say(fmt::format("aims: {}, at {}", to_string(fault), to_string(situation)));
        provoke(situation);
        schedule_aim(fault);
    });
}

// Brings the situation about on one node, as far as the world can.
void World::provoke(Situation situation) {
    const std::size_t index = aims_chance_.below(nodes_.size());
    const auto leads = leader(index);
    if (!leads) {
        return;
    }
    Node& node = nodes_[index];
    Pod& pod = pods_[*leads];
    switch (situation) {
        case Situation::kSeeking:
            // The next process cannot open the lock. The leader may go on meanwhile.
            break_disk(node, test::FaultDevice::Operation::kOpen, "open");
            if (Pod& one = pods_[aims_chance_.below(pods_.size())];
                one.node == &node && one.sidecar != nullptr) {
                one.sidecar->kill();
            } else {
                pod.sidecar->kill();
            }
            break;
        case Situation::kRecovering:
            pod.sidecar->kill();
            break;
        case Situation::kShrinking:
            set_grant(node, {Bytes{node.grant.resident_bytes.count() / 2}, std::nullopt});
            break;
        case Situation::kBorrowing:
            set_grant(node, {dataset_->manifest().total_bytes(), std::nullopt});
            break;
        case Situation::kRetiring:
            refuse_key(pod, kAimsFor);
            break;
        case Situation::kFollowing:
        case Situation::kLeading:
        case Situation::kInGroup:
            break;
    }
}

bool World::is_in(const Pod& pod, Situation situation) const {
    if (pod.sidecar == nullptr || pod.sidecar->is_dead()) {
        return false;
    }
    return situation == Situation::kInGroup ? is_in_group(pod) : situation_of(pod) == situation;
}

// After each step of the world. An aim ends with the first sidecar that it meets and that the fault
// can do something to.
void World::take_aims() {
    if (aims_.empty()) {
        return;
    }
    for (const Aim& aim : std::exchange(aims_, {})) {
        if (faults_are_over_ || schedule_.now() > aim.until) {
            continue;
        }
        schedule_.set_speaker("world");
        const bool has_hit = std::ranges::any_of(
            pods_, [&](Pod& pod) { return is_in(pod, aim.situation) && inject(aim.fault, pod); });
        if (!has_hit) {
            aims_.push_back(aim);
        }
    }
}

}  // namespace stoker::world
