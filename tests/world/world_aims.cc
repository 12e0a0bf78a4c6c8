// Aimed faults: they wait until a sidecar is in a chosen situation, because faults at random times
// hardly ever meet a situation that lasts a few steps of a loop. Half of the seeds have them; the
// other seeds run as if they did not exist. Also counts the situations that all faults meet.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::seconds;

constexpr Duration kAimsFor = seconds{30};
// Longer, for faults between peers while a window borrows, because that situation is rarer.
constexpr Duration kAimsLonger = seconds{120};
constexpr Duration kPeersAimedEvery = seconds{40};  // mean time between such faults

bool is_between_peers(Fault fault) {
    return fault >= Fault::kLinkCut;
}

}  // namespace

// Counts the situation of each sidecar that the fault meets: the sidecar of `pod`; if that is
// nullptr, all sidecars on `node`; if that is nullptr too, all sidecars.
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

// False: the fault had no effect.
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

// About half of the kinds of faults that the seed has are also aimed. Where peers share windows, all
// kinds between peers are aimed, because no other seed lets them meet a window that borrows.
void World::draw_aims() {
    if (script_ || aims_chance_.below(2) == 0) {
        return;
    }
    for (std::size_t i = 0; i < kFaultKinds; ++i) {
        const auto fault = static_cast<Fault>(i);
        if (plan_.shares_windows && network_ != nullptr && is_between_peers(fault)) {
            schedule_aim(fault, kPeersAimedEvery);
        } else if (every(fault) > Duration{} && aims_chance_.below(2) == 0) {
            schedule_aim(fault, every(fault));
        }
    }
}

// Schedules the next aim of this fault, at a drawn situation. Where windows are shared, half of the
// aims wait for one that borrows, and all aims of faults between peers.
void World::schedule_aim(Fault fault, Duration every) {
    const double wait = -seconds_of(every) * std::log(1 - aims_chance_.unit());
    schedule_.run_in(Duration{static_cast<Duration::rep>(wait * 1e9)}, [this, fault, every] {
        if (faults_are_over_) {
            return;
        }
        const bool is_rare = plan_.shares_windows && is_between_peers(fault);
        const bool at_borrowing = is_rare || (plan_.shares_windows && aims_chance_.below(2) == 0);
        const auto situation = at_borrowing
                                   ? Situation::kBorrowing
                                   : static_cast<Situation>(aims_chance_.below(kSituations));
        aims_.push_back({fault, situation, schedule_.now() + (is_rare ? kAimsLonger : kAimsFor)});
        schedule_.say(fmt::format(
            "next aimed fault: {}, at situation {}", to_string(fault), to_string(situation)));
        provoke(situation);
        schedule_aim(fault, every);
    });
}

// Brings about the situation on one node, if the world can.
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
            // A broken open() keeps the next process from taking the lock. The leader may run on
            // meanwhile.
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

// Called after each step of the world. An aim is removed once its fault has hit a sidecar in the
// situation.
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
