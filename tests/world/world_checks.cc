// The promises that the world checks every 100 ms, and when a program says something.
#include <algorithm>

#include <fmt/format.h>

#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLookInterval = milliseconds{100};
// After this, a grant or the start of a sidecar has its effect, and a free lock is taken.
constexpr Duration kSettled = seconds{2};
constexpr Duration kLeaderReady = seconds{5};  // after this, a Ready leader refuses nothing
constexpr Duration kGrantKept = seconds{60};   // what clients hold of a larger grant is gone then
constexpr Duration kAnswerBound = seconds{15};
constexpr std::uint32_t kRefusalsMax = 40;  // eight, and what was in flight or queued then

}  // namespace

void World::look() {
    std::size_t holders = 0;
    bool is_ready = false;
    for (Pod& pod : pods_) {
        if (pod.sidecar != nullptr && pod.sidecar->holds_lock()) {
            ++holders;
            pod.has_led = true;
            if (std::exchange(leader_, pod.sidecar->name()) != pod.sidecar->name()) {
                leader_since_ = schedule_.now();
            }
            is_ready = is_ready || pod.is_ready_leader();
            check_room(pod);
            if (++looks_ % 16 == 0) {
                check_table(pod);
            }
        }
        check_wait(pod);
        check_error(pod);
    }
    if (!is_ready) {
        unready_at_ = schedule_.now();
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
    if (is_led || !can_lead || schedule_.now() < shaken_until_) {
        led_at_ = schedule_.now();
    } else if (schedule_.now() - led_at_ > kSettled) {
        oracle_->accuse("nobody takes the free lock of the directory");
    }
}

// Every sample in the table of a leader is readable, also after a power cut.
void World::check_table(Pod& pod) {
    if (!pod.is_ready_leader() || unreadable_ > 0 || has_rotted_) {
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

// A sidecar that is well refuses nothing while a leader that is well is ready.
void World::check_refused(const Pod& pod, const std::string& what) {
    const auto leads =
        std::ranges::find_if(pods_, [](const Pod& other) { return other.is_ready_leader(); });
    if (is_calm() && is_well(pod, kLeaderReady) && leads != pods_.end() &&
        is_well(*leads, kLeaderReady) &&
        schedule_.now() - std::max(leader_since_, unready_at_) > kLeaderReady) {
        oracle_->accuse(fmt::format(
            "{} refuses {} while {} leads, and both are well",
            pod.sidecar->name(),
            what,
            leads->sidecar->name()));
    }
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

// A sample that a leader has fetched stays readable while the client that requested it holds it.
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
    const bool is_new = schedule_.now() - granted_at_ < kSettled;
    if (!pod.is_ready_leader() || is_new) {
        return;
    }
    const sidecar::LeaderStatus status = pod.sidecar->leader()->status();
    if (status.bytes.resident > grant_.resident_bytes) {
        oracle_->accuse(fmt::format(
            "{} keeps {} bytes, the grant is {}",
            pod.sidecar->name(),
            status.bytes.resident.count(),
            grant_.resident_bytes.count()));
    }
    // The window borrows from the grant. After a smaller grant, what clients hold may still be there.
    std::erase_if(
        old_grants_, [this](const auto& old) { return schedule_.now() - old.first > kGrantKept; });
    Bytes grant = grant_.resident_bytes;
    for (const auto& [ended_at, bytes] : old_grants_) {
        grant = std::max(grant, bytes);
    }
    const Bytes window = pod.config.datasets[0].window_bytes;
    if (status.bytes.resident + status.bytes.window > grant + window) {
        oracle_->accuse(fmt::format(
            "{} holds {} resident bytes and {} window bytes, more than the grant of {} and the "
            "window of {}",
            pod.sidecar->name(),
            status.bytes.resident.count(),
            status.bytes.window.count(),
            grant.count(),
            window.count()));
    }
}

}  // namespace stoker::world
