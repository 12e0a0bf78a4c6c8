// The promises that the world checks every 100 ms, and when a program says something.
#include <algorithm>

#include <fmt/format.h>

#include "sidecar/core/refusals.h"
#include "sidecar/service/fetch_patience.h"
#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLookInterval = milliseconds{100};
// Time after which a grant has taken effect, a started sidecar works, and a free lock is taken.
constexpr Duration kSettled = seconds{2};
constexpr Duration kLeaderReady = seconds{5};  // after this, a Ready leader refuses nothing
constexpr Duration kGrantKept = seconds{60};   // what clients hold of a larger grant is gone then
constexpr Duration kRestMax = seconds{60};     // longest pause of a leader whose key was refused
constexpr Duration kAnswerBound = seconds{15};
constexpr Duration kAskAgain = seconds{5};  // the same as in access_proof.cc
// A follower waits for a leader half a second longer than this before its clients continue alone.
constexpr Duration kUnled = milliseconds{2500};
constexpr std::uint32_t kRefusalsMax = 40;  // eight, and the requests in flight or queued then

}  // namespace

void World::look() {
    const OriginSite::Weather& weather = site_->weather;
    if (weather.failing > 0 || weather.lying > 0 || weather.is_stalled ||
        !weather.refused.empty() || site_->backlog() > seconds{1}) {
        fair_since_ = schedule_.now();
    }
    for (Node& node : nodes_) {
        look_at(node);
    }
    if (++looks_ % 20 == 0) {
        std::ranges::for_each(nodes_, [this](const Node& node) { note_node(node); });
    }
    if (looks_ % 64 == 0) {
        ask_pages();
    }
    if (network_ != nullptr && looks_ % 4 == 0) {
        look_at_peers();
    }
    for (Pod& pod : pods_) {
        check_wait(pod);
        check_error(pod);
    }
    schedule_.run_in(kLookInterval, [this] { look(); });
}

void World::look_at(Node& node) {
    std::size_t holders = 0;
    for (Pod& pod : pods_) {
        if (pod.node != &node || pod.sidecar == nullptr || !pod.sidecar->holds_lock()) {
            continue;
        }
        ++holders;
        if (!pod.job->guest_of.empty()) {
            oracle_->accuse(pod.sidecar->name() + ", a guest's, holds the lock");
        }
        pod.has_led = pod.has_led || pod.is_ready_leader();
        if (std::exchange(node.leader, pod.sidecar->name()) != pod.sidecar->name()) {
            node.leader_since = schedule_.now();
            node.lost_holds = 0;
        }
        check_room(pod);
        // A new leader's table is checked at once, before readers find damaged samples and the
        // leader drops them.
        const bool is_first = pod.is_ready_leader() && node.checked != pod.sidecar->name();
        if (is_first) {
            node.checked = pod.sidecar->name();
            node.compared.assign(plan_.samples, 0);
        }
        if (is_first || ++node.looks % 16 == 0) {
            check_table(pod);
        }
    }
    if (holders > 0) {
        node.held_at = schedule_.now();
    } else if (schedule_.now() - node.held_at > kUnled) {
        node.leaderless_at = schedule_.now();
    }
    if (leader_of(node, true) == nullptr) {
        node.unready_at = schedule_.now();
    }
    note_lead(node);
    check_leader(node, holders > 0);
    if (holders > 1) {
        oracle_->accuse("two processes hold the lock of the directory of " + node.name);
    }
}

// Every page of a sidecar that runs can be read at any time.
void World::ask_pages() {
    const Pod& pod = pods_[schedule_.luck().below(pods_.size())];
    if (pod.sidecar == nullptr || pod.sidecar->is_dead()) {
        return;
    }
    for (const char* page : {"/healthz", "/readyz", "/status", "/metrics"}) {
        const http::ServerResponse answer = pod.sidecar->answer(page);
        const bool may_wait = std::string_view{page} == "/readyz" && !pod.job->guest_of.empty();
        const bool is_expected = answer.status == 200 || (may_wait && answer.status == 503);
        ++oracle_->counts[fmt::format("page {}: {}", page, answer.status)];
        if (is_well(pod, kSettled) && (!is_expected || answer.body.empty())) {
            oracle_->accuse(fmt::format(
                "{} answers {} with {}: {}",
                pod.sidecar->name(),
                page,
                answer.status,
                answer.body));
        }
    }
}

// The pod whose sidecar leads, with the listing if `is_ready`; nullptr: none.
const World::Pod* World::leader_of(const Node& node, bool is_ready) const {
    const auto leads = std::ranges::find_if(pods_, [&](const Pod& pod) {
        return pod.node == &node && pod.sidecar != nullptr && pod.sidecar->leader() != nullptr &&
               (!is_ready || pod.is_ready_leader());
    });
    return leads == pods_.end() ? nullptr : &*leads;
}

// A sidecar takes a free lock soon, unless it rests because its key was refused.
void World::check_leader(Node& node, bool is_led) {
    const bool can_lead = std::ranges::any_of(pods_, [&](const Pod& pod) {
        return pod.node == &node && pod.sidecar != nullptr && pod.job->guest_of.empty() &&
               !pod.refused_at && schedule_.now() - pod.refused_until > kRestMax &&
               schedule_.now() - pod.started_at > kSettled;
    });
    if (is_led || !can_lead || schedule_.now() < node.shaken_until) {
        node.led_at = schedule_.now();
    } else if (schedule_.now() - node.led_at > kSettled) {
        oracle_->accuse("nobody takes the free lock of the directory of " + node.name);
    }
}

// Every sample in the table of a leader is readable, also after a power cut.
void World::check_table(Pod& pod) {
    if (!pod.is_ready_leader() || pod.node->unreadable > 0 || pod.node->has_rotted) {
        return;
    }
    NodeView view{*pod.node->disk, pod.settings.data_folder, dataset_->manifest().revision()};
    for (std::uint64_t id = 0; id < plan_.samples; ++id) {
        // An entry of the residency table always means the same bytes, unless a fault changes them:
        // a new leader follows a power cut, and a flipped bit ends these checks.
        std::uint64_t& compared = pod.node->compared.at(id);
        const bool is_known = view.word(id) == compared;
        if (view.word(id) == 0 || (is_known && view.has_header(id))) {
            continue;
        }
        compared = view.word(id);
        const auto bytes = view.read(id);
        if (!bytes) {
            oracle_->accuse(fmt::format(
                "{} publishes sample {}, which cannot be read", pod.sidecar->name(), id));
        } else if (!has_equal_bytes(*bytes, oracle_->payload(id))) {
            oracle_->accuse(
                fmt::format("{} publishes other bytes for sample {}", pod.sidecar->name(), id));
        }
    }
}

// A trainer's session survives the end of every other sidecar, if its pod's key is accepted. The
// trainer's Hello may be refused while no sidecar leads, while a sidecar whose key was refused
// pauses before it leads again, and while the leader's key may not list the origin. In the last
// case trainers of the Dataset's own namespace wait until another sidecar leads; trainers of
// guests, whose sidecars cannot lead, wait until the leader's key may list. A guest's session may
// end when no pod of the Dataset's own namespace has led for a while: its trainer goes on with its
// own key.
void World::check_loss(const Pod& pod, bool had_session) {
    const Node& node = *pod.node;
    const Pod* const leads = leader_of(node, false);
    const bool is_refused = leads != nullptr && !leads->is_ready_leader() &&
                            schedule_.now() - leads->refused_until <= kRestMax;
    const bool is_new = leads != nullptr && (node.leader != leads->sidecar->name() ||
                                             schedule_.now() - node.leader_since < kLeaderReady);
    const bool may_refuse =
        !had_session && (leads == nullptr || schedule_.now() - pod.refused_until <= kRestMax ||
                         (is_refused && (is_new || !pod.job->guest_of.empty())));
    const bool is_left =
        !pod.job->guest_of.empty() && schedule_.now() - node.leaderless_at <= kSettled;
    const bool is_ours = pod.refused_at || is_left || may_refuse || pod.sidecar == nullptr ||
                         pod.sidecar->is_dead() || schedule_.now() - pod.started_at < kSettled;
    if (!is_ours && is_calm(node)) {
        oracle_->accuse(fmt::format(
            "{} {}, which was well",
            had_session ? pod.settings.name + " lost its session at"
                        : "the Hello of " + pod.settings.name + " was refused by",
            pod.sidecar->name()));
    }
}

// Whether the pod's sidecar runs and has run without a stop for longer than `since`.
bool World::is_well(const Pod& pod, Duration since) const {
    return pod.sidecar != nullptr && !pod.sidecar->is_dead() && !pod.sidecar->is_stopped() &&
           schedule_.now() - std::max(pod.started_at, pod.ran_at) > since;
}

// Whether a leader may refuse the sample, because the origin did not return it as listed. A refusal
// lasts for Refusals::kFirst plus the time of all refusals before it in a row (see Refusals).
bool World::is_lied_about(const Node& node, std::uint64_t sample) const {
    using sidecar::Refusals;
    const auto lies = node.lies.find(sample);
    if (lies == node.lies.end()) {
        return false;
    }
    const Duration before = lies->second.last - std::max(lies->second.first, node.leader_since);
    const Duration longest = std::min(before + Refusals::kFirst, Refusals::kLongest);
    return schedule_.now() - lies->second.last < longest + kSettled;
}

// A sidecar that is well refuses no request while a ready leader is well, too.
void World::check_refused(const Pod& pod, const std::string& what) {
    const Node& node = *pod.node;
    const bool is_keyless = site_->keyless.contains(pod.settings.pod);
    if (is_keyless && !can_serve_guest(pod)) {
        return;
    }
    const Pod* const leads = leader_of(node, true);
    if (pod.refused_at || (leads != nullptr && leads->refused_at)) {
        return;
    }
    if (is_calm(node) && is_well(pod, kLeaderReady) && leads != nullptr &&
        is_well(*leads, kLeaderReady) &&
        schedule_.now() - std::max(node.leader_since, node.unready_at) > kLeaderReady) {
        oracle_->accuse(fmt::format(
            "{} refuses {} while {} leads, and both are well",
            pod.sidecar->name(),
            what,
            leads->sidecar->name()));
    }
}

// As check_refused(), for a sample for which the sidecar has no room. That is allowed if the
// batches of the namespace's trainers are larger than the room in the window that it has for sure.
void World::check_no_room(const Pod& pod, const std::string& what) {
    if (batches_of(pod) <= assured_part(pod)) {
        check_refused(pod, what);
    }
}

// Record bytes of the batches that trainers of the pod's namespace read on its node.
Bytes World::batches_of(const Pod& pod) const {
    Bytes sum{};
    for (const Pod& other : pods_) {
        if (other.node == pod.node && other.job->guest_of == pod.job->guest_of &&
            other.trainer != nullptr) {
            sum += other.trainer->batch_bytes();
        }
    }
    return sum;
}

// A pod whose key was never accepted is not served from the node's cache, unless its own job has
// listed the origin.
void World::check_welcome(const Pod& pod) {
    const bool job_has_led = std::ranges::any_of(pods_, [&pod](const Pod& other) {
        return other.job == pod.job && (other.has_led || other.is_ready_leader());
    });
    const bool is_proven = !pod.job->guest_of.empty() || job_has_led || !pod.refused_at ||
                           *pod.refused_at > pod.started_at || pod.sidecar->leader() != nullptr;
    if (!is_proven) {
        oracle_->accuse(pod.settings.name + " is served, but its pod's key is refused");
    }
}

// A sidecar that is well answers soon, whatever happens to the others, as long as the origin is
// well. A guest without a key waits for a leader, and half a minute longer for room in the window.
void World::check_wait(const Pod& pod) {
    const Node& node = *pod.node;
    const bool is_keyless =
        site_->keyless.contains(pod.settings.pod) || schedule_.now() - pod.keyed_at <= kAnswerBound;
    const Duration bound =
        is_keyless ? kAnswerBound + sidecar::FetchPatience::kPatience : kAnswerBound;
    const bool is_led = leader_of(node, true) != nullptr &&
                        schedule_.now() - std::max(node.leader_since, node.unready_at) > bound &&
                        is_calm(node);
    const bool is_fair = (!is_keyless || is_led) && schedule_.now() - fair_since_ > seconds{60};
    if (is_fair && is_well(pod, bound) && pod.trainer != nullptr &&
        pod.trainer->waits_for() > bound) {
        oracle_->accuse(fmt::format(
            "{} has waited {:.0f} s for an answer of {}, which is well",
            pod.settings.name,
            seconds_of(pod.trainer->waits_for()),
            pod.sidecar->name()));
    }
}

// A sidecar that is well can follow a leader that is well. A refused key is tried again when the
// trainer asks again, at least 5 s after the last answer; a trainer that waits for another rank
// does not ask.
void World::check_error(Pod& pod) {
    const Node& node = *pod.node;
    const Pod* const leads = leader_of(node, false);
    if (pod.refused_at) {
        pod.asked_again_at.reset();
    } else if (
        !pod.asked_again_at && pod.trainer != nullptr &&
        pod.trainer->greeted_at() > pod.refused_until + kAskAgain) {
        pod.asked_again_at = schedule_.now();
    }
    if (schedule_.now() < node.shaken_until || leads == nullptr || leads == &pod ||
        !pod.asked_again_at || pod.trainer == nullptr ||
        schedule_.now() - *pod.asked_again_at < kAnswerBound || !is_well(*leads, kAnswerBound) ||
        !is_well(pod, kAnswerBound) || schedule_.now() - node.leader_since < kAnswerBound ||
        pod.sidecar->error().empty()) {
        return;
    }
    oracle_->accuse(fmt::format(
        "{} cannot follow {}, and both are well: {}",
        pod.sidecar->name(),
        leads->sidecar->name(),
        pod.sidecar->error()));
}

// A sample that a leader has fetched stays readable while the client that requested it holds it. A
// guest cannot hold samples of the owner. If the owner's batches are larger than its part of the
// window, its leader may end holds on what was fetched for guests and peers, and counts them.
void World::check_unreadable(const Pod& pod) {
    Node& node = *pod.node;
    if (!pod.job->guest_of.empty() || !is_calm(node) || node.has_rotted ||
        schedule_.now() - node.leader_since <= seconds{5}) {
        return;
    }
    const Pod* const leads = leader_of(node, true);
    const std::uint64_t ended =
        leads == nullptr ? 0 : leads->sidecar->leader()->status().counters.ended_holds;
    if (batches_of(pod) <= window_part(pod) || ++node.lost_holds > ended) {
        oracle_->accuse("a fetched sample cannot be read on " + node.name);
    }
}

// A leader whose key is refused lets another sidecar lead. Refused fetches for guests do not count,
// and the origin cannot tell them apart, so nodes with guests are not checked.
void World::check_refusals(const std::string& name, std::uint32_t in_row) {
    const Pod& pod = pod_named(name);
    const bool has_guests = std::ranges::any_of(pods_, [&](const Pod& other) {
        return other.node == pod.node && !other.job->guest_of.empty() && other.sidecar != nullptr;
    });
    const bool has_others = std::ranges::any_of(pods_, [&](const Pod& other) {
        return &other != &pod && other.job->guest_of.empty() && other.node == pod.node &&
               is_well(other, seconds{10});
    });
    if (has_others && !has_guests && in_row > kRefusalsMax) {
        oracle_->accuse(fmt::format(
            "the sidecar of {} leads on after {} refused fetches in a row", name, in_row));
    }
}

World::Pod& World::pod_named(const std::string& name) {
    return *std::ranges::find(pods_, name, [](const Pod& one) { return one.settings.pod; });
}

bool World::is_on_node(Node& node, std::uint64_t sample) {
    if (!is_calm(node) || node.has_rotted) {
        return false;
    }
    node.view->refresh();
    return node.view->read(sample).has_value();
}

void World::check_room(Pod& pod) {
    Node& node = *pod.node;
    const bool is_new = schedule_.now() - node.granted_at < kSettled;
    if (!pod.is_ready_leader() || is_new) {
        return;
    }
    const sidecar::LeaderStatus status = pod.sidecar->leader()->status();
    if (status.bytes.resident > node.grant.resident_bytes) {
        oracle_->accuse(fmt::format(
            "{} keeps {} bytes, the grant is {}",
            pod.sidecar->name(),
            status.bytes.resident.count(),
            node.grant.resident_bytes.count()));
    }
    // The window may borrow from the grant. For a while after a smaller grant, it may still have
    // samples that clients have yet to read: the largest of the recent grants counts.
    std::erase_if(node.old_grants, [this](const auto& old) {
        return schedule_.now() - old.first > kGrantKept;
    });
    Bytes grant = node.grant.resident_bytes;
    for (const auto& [ended_at, bytes] : node.old_grants) {
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

// The situation of the pod's sidecar, which must run.
Situation World::situation_of(const Pod& pod) const {
    const sidecar::Leader* const leader = pod.sidecar->leader();
    if (leader == nullptr) {
        return pod.sidecar->holds_lock()            ? Situation::kRetiring
               : pod.sidecar->role() == "following" ? Situation::kFollowing
                                                    : Situation::kSeeking;
    }
    if (!pod.is_ready_leader()) {
        return Situation::kRecovering;
    }
    const sidecar::LeaderStatus status = leader->status();
    const Node& node = *pod.node;
    if (status.bytes.resident > node.grant.resident_bytes ||
        (node.has_shrunk && schedule_.now() - node.granted_at < kSettled)) {
        return Situation::kShrinking;
    }
    return status.bytes.window > pod.config.datasets[0].window_bytes ? Situation::kBorrowing
                                                                     : Situation::kLeading;
}

// Whether the pod's sidecar, which must run, serves as one of several peers.
bool World::is_in_group(const Pod& pod) const {
    return pod.is_ready_leader() && network_ != nullptr && group().members.size() > 1 &&
           std::ranges::any_of(group().members, [&](const control::PeerMember& member) {
               return member.node == pod.node->name &&
                      member.address == pod.sidecar->leader()->status().peer_address;
           });
}

}  // namespace stoker::world
