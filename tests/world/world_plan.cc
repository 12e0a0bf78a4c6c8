// The draws of a seed: sizes, the origin's speed and faults (weather), other faults, and grants.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

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
    draw_sharing(size);
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
        script_ && script_->sample_bytes > 0
            ? test::Dataset{std::vector<std::uint64_t>(plan_.samples, script_->sample_bytes)}
            : test::Dataset::random(plan_.samples, plan_.sample_bytes_max, luck()));
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
        fair_.latency = script_->origin_latency;
        fair_.bytes_per_second = script_->origin_bytes_per_second;
    }
    site_->weather = fair_;
    slowest_task_ = schedule_.draw_scale(microseconds{10}, milliseconds{200});
    schedule_.set_lag(schedule_.draw_scale(microseconds{10}, milliseconds{20}));
    if (script_ && script_->epochs > 0) {
        slowest_task_ = microseconds{10};
        schedule_.set_lag(microseconds{10});
    }
}

// In every eighth seed each pod is a windowed job of its own with a small window: drawn, unread
// samples soon exceed the window, which then borrows from the grant. Two such nodes are peers, so
// that faults between peers meet such a window. Uses a random source of its own, so that the other
// seeds run as if this did not exist.
void World::draw_sharing(Size size) {
    plan_.shares_windows =
        !script_ && size.nodes + size.jobs + size.pods == 0 && share_chance_.below(8) == 0;
    if (plan_.shares_windows) {
        plan_.nodes = 1 + share_chance_.below(2);
        plan_.pods = 2 * plan_.nodes + share_chance_.below(3);
        plan_.jobs = plan_.pods;
        plan_.has_peers = plan_.nodes > 1;
    }
}

// Each group of faults is on in half of the seeds, with two thirds of its kinds.
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

// A few bytes, or up to half more than the dataset has.
Bytes World::draw_grant() {
    if (script_) {
        return script_->grant;
    }
    const std::uint64_t total = dataset_->manifest().total_bytes().count();
    return Bytes{
        schedule_.luck().below(schedule_.draw_chance(0.25) ? total / 20 + 1 : total * 3 / 2 + 1)};
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

}  // namespace stoker::world
