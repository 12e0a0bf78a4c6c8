// Peers in the world: what the operator does for them, their faults, and the checks of them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/domain/segment_format.h"
#include "sidecar/core/placement.h"
#include "tests/world/world.h"

namespace stoker::world {

namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kAuthority = "control CA";
// Time after which peers that know each other are connected, and no peer is in quarantine or
// paused.
constexpr Duration kPeersSettled = seconds{75};

}  // namespace

// Uses a random source of its own, so that what it draws does not change the other draws of a seed.
void World::make_peers() {
    const bool is_drawn = !script_ && plan_.nodes > 1 && peers_chance_.below(2) == 0;
    plan_.has_peers = script_ ? script_->has_peers : is_drawn || plan_.has_peers;
    if (!plan_.has_peers) {
        return;
    }
    unsettled_at_ = schedule_.now();
    VirtualNetwork::Speed speed{
        draw_for_peers(microseconds{50}, milliseconds{20}),
        std::pow(10.0, 5.5 + 3.5 * peers_chance_.unit())};
    if (script_) {
        speed = {script_->peer_delay, 1e8};
    } else {
        draw_peer_faults();
    }
    network_ = std::make_unique<VirtualNetwork>(schedule_, speed, peers_chance_());
    network_->on_payload = [this](const auto& client, const auto& server) {
        for (const sidecar::PeerIdentity& one : {client, server}) {
            if (one.namespace_name != kOwner ||
                std::ranges::count(one.dataset_uids, "train") == 0) {
                oracle_->accuse(
                    "a sample has crossed to or from a stranger of " + one.namespace_name);
            }
        }
    };
    schedule_.say(fmt::format(
        "peers: a frame takes {:.1f} ms, {:.1f} MB/s",
        seconds_of(speed.delay) * 1000,
        speed.bytes_per_second / 1e6));
}

void World::draw_peer_faults() {
    using enum Fault;
    const std::vector<std::vector<Fault>> groups = {
        {kLinkCut, kLinkSlow, kLinkReset, kLinkHalfOpen, kLinkWrongBytes},
        {kPeersRefused, kLeafRefused},
        {kGroupLate, kGroupLost, kGroupOld}};
    for (const auto& group : groups) {
        const bool is_on = peers_chance_.below(3) > 0;
        for (const Fault fault : group) {
            const Duration every = draw_for_peers(seconds{5}, seconds{200});
            if (peers_chance_.below(3) > 0 && is_on) {
                plan_.every.at(static_cast<std::size_t>(fault)) = every;
            }
        }
    }
}

// Log-uniform in [least, most].
Duration World::draw_for_peers(Duration least, Duration most) {
    const double low = std::log(seconds_of(least));
    const double high = std::log(seconds_of(most));
    const double drawn_s = std::exp(low + (high - low) * peers_chance_.unit());
    return Duration{static_cast<Duration::rep>(drawn_s * 1e9)};
}

std::string World::node_name(std::size_t node) {
    return fmt::format("node-{}", node);
}

// The address contains the node: a pod that moves gets another one.
std::string World::address_of(const Pod& pod) const {
    return fmt::format("{}.{}:7331", pod.settings.pod, pod.node->name);
}

VirtualLeaf World::good_leaf() const {
    return {kAuthority, {kOwner, {"other", "train"}}, schedule_.passed() + hours{24}};
}

// The sidecar has opened its stream to the operator.
void World::greet_peer(Pod& pod) {
    pod.group_version = 0;
    pod.has_bad_leaf = false;
    if (network_ == nullptr || !pod.job->guest_of.empty()) {
        return;
    }
    const Duration delay = draw_for_peers(milliseconds{10}, seconds{1});
    schedule_.run_in(delay, [this, &pod, starts = pod.starts] {
        if (pod.starts == starts) {
            send_leaf(pod, good_leaf());
            send_group(pod, groups_.newest());
        }
    });
}

void World::send_leaf(Pod& pod, const VirtualLeaf& leaf) {
    if (pod.sidecar != nullptr && !pod.sidecar->is_dead()) {
        pod.sidecar->set_certificate({leaf.text(), kAuthority});
    }
}

// Sends the group; messages of one stream keep their order.
void World::send_group(Pod& pod, const control::PeerGroup& group) {
    if (!pod.job->guest_of.empty()) {
        return;
    }
    const TimePoint now = schedule_.now();
    Duration delay = draw_for_peers(milliseconds{10}, milliseconds{500});
    if (now < pod.groups_late_until) {
        delay += draw_for_peers(seconds{1}, seconds{20});
    }
    pod.group_due = std::max(pod.group_due, now + delay);
    schedule_.run_in(pod.group_due - now, [this, &pod, group, starts = pod.starts] {
        if (pod.starts == starts && schedule_.now() >= pod.groups_lost_until) {
            deliver_group(pod, group);
        }
    });
}

void World::deliver_group(Pod& pod, const control::PeerGroup& group) {
    if (pod.sidecar != nullptr && !pod.sidecar->is_dead()) {
        pod.group_version = std::max(pod.group_version, group.version);
        pod.sidecar->set_group(group);
    }
}

// Whether the faults are over and, if there are peers, the peers have had time to settle.
bool World::may_trainers_end() const {
    return faults_are_over_ &&
           (network_ == nullptr || script_ || schedule_.now() - healed_at_ > 2 * kPeersSettled);
}

bool World::hit_peers(Fault fault, Pod& pod) {
    if (network_ == nullptr || !pod.job->guest_of.empty()) {
        return false;
    }
    switch (fault) {
        case Fault::kPeersRefused: {
            const bool is_reset = peers_chance_.below(2) == 0;
            schedule_.say(fmt::format("connections to {} are refused", address_of(pod)));
            network_->refuse(
                address_of(pod),
                is_reset ? VirtualNetwork::Refusal::kReset : VirtualNetwork::Refusal::kSilence,
                draw_for_peers(seconds{1}, seconds{120}));
            return true;
        }
        case Fault::kLeafRefused:
            give_bad_leaf(pod);
            return true;
        case Fault::kGroupLate:
        case Fault::kGroupLost:
        case Fault::kGroupOld:
            disturb_groups(fault, pod);
            return true;
        default:
            return hit_link(fault, *pod.node);
    }
}

bool World::hit_link(Fault fault, Node& node) {
    const Duration lasts = draw_for_peers(milliseconds{100}, seconds{90});
    if (const bool is_half_open = fault == Fault::kLinkHalfOpen;
        is_half_open || fault == Fault::kLinkReset) {
        const char* const ends = is_half_open ? "; one end does not know" : "";
        if (!network_->reset(node.name, is_half_open)) {
            return false;
        }
        schedule_.say(fmt::format("has reset a connection of {}{}", node.name, ends));
        return true;
    }
    schedule_.say(
        fmt::format("{} at {} for {:.1f} s", to_string(fault), node.name, seconds_of(lasts)));
    if (fault == Fault::kLinkSlow) {
        network_->slow(node.name, std::pow(10.0, 1 + 2 * peers_chance_.unit()), lasts);
    } else if (fault == Fault::kLinkWrongBytes) {
        network_->corrupt(node.name, lasts);
    } else {
        const std::vector<Node*> others = others_than(node);
        if (others.empty()) {
            return false;
        }
        const std::string& other = others[peers_chance_.below(others.size())]->name;
        const std::uint64_t ways = peers_chance_.below(3);
        constexpr std::array kWays{"<->", "->", "<-"};
        schedule_.say(fmt::format("cuts the link {} {} {}", node.name, kWays.at(ways), other));
        if (ways != 2) {
            network_->cut(node.name, other, lasts);
        }
        if (ways != 1) {
            network_->cut(other, node.name, lasts);
        }
    }
    return true;
}

void World::give_bad_leaf(Pod& pod) {
    VirtualLeaf leaf = good_leaf();
    switch (peers_chance_.below(4)) {
        case 0:
            leaf.until = schedule_.passed();
            break;
        case 1:
            leaf.authority = "another CA";
            break;
        case 2:
            leaf.identity.namespace_name = "speech";
            break;
        default:
            leaf.identity.dataset_uids = {"other"};
    }
    schedule_.say(fmt::format("{} has the certificate {}", pod.settings.pod, leaf.text()));
    pod.has_bad_leaf = true;
    send_leaf(pod, leaf);
    schedule_.run_in(draw_for_peers(seconds{1}, seconds{120}), [this, &pod, starts = pod.starts] {
        if (pod.starts == starts) {
            pod.has_bad_leaf = false;
            send_leaf(pod, good_leaf());
        }
    });
}

void World::disturb_groups(Fault fault, Pod& pod) {
    const Duration lasts = draw_for_peers(seconds{1}, seconds{60});
    if (fault == Fault::kGroupOld) {
        const auto& versions = groups_.versions();
        const control::PeerGroup& old = versions[peers_chance_.below(versions.size())];
        schedule_.say(fmt::format("{} gets group {} again", pod.settings.pod, old.version));
        deliver_group(pod, old);
        return;
    }
    if (fault == Fault::kGroupLost) {
        lose_groups(pod, lasts);
        return;
    }
    schedule_.say(
        fmt::format("groups for {} are late for {:.1f} s", pod.settings.pod, seconds_of(lasts)));
    pod.groups_late_until = schedule_.now() + lasts;
}

void World::lose_groups(Pod& pod, Duration lasts) {
    schedule_.say(
        fmt::format("groups for {} are lost for {:.1f} s", pod.settings.pod, seconds_of(lasts)));
    pod.groups_lost_until = schedule_.now() + lasts;
    schedule_.run_in(lasts, [this, &pod] { send_group(pod, groups_.newest()); });
}

void World::heal_peers() {
    if (network_ == nullptr) {
        return;
    }
    network_->heal();
    healed_at_ = schedule_.now();
    for (Pod& pod : pods_) {
        pod.groups_late_until = pod.groups_lost_until = schedule_.now();
        if (pod.has_bad_leaf) {
            pod.has_bad_leaf = false;
            send_leaf(pod, good_leaf());
        }
        send_group(pod, groups_.newest());
        // At last an older group arrives, as from an operator that has been replaced.
        schedule_.run_in(seconds{3}, [this, &pod] {
            deliver_group(pod, groups_.versions()[peers_chance_.below(groups_.versions().size())]);
        });
    }
}

void World::look_at_peers() {
    look_for_group();
    if (!have_peers_settled()) {
        unsettled_at_ = schedule_.now();
    }
    Bytes crossed{};
    for (Node& node : nodes_) {
        check_crossed(node);
        check_strays(node);
        crossed += network_->payload_bytes(node.name);
    }
    oracle_->counts["kB from node to node"] = crossed.count() / 1000;
}

// Makes the next group, as the operator does, from the leaders that report a peer address.
void World::look_for_group() {
    std::vector<control::PeerMember> leaders;
    for (const Node& node : nodes_) {
        const Pod* const leads = leader_of(node, false);
        if (leads == nullptr || leads->sidecar->is_dead() || leads->sidecar->is_stopped()) {
            continue;
        }
        const sidecar::LeaderStatus status = leads->sidecar->leader()->status();
        if (!status.peer_address.empty()) {
            leaders.push_back({node.name, status.peer_address, status.peer_generation});
        }
    }
    if (!groups_.see(schedule_.now(), leaders)) {
        return;
    }
    std::string text = fmt::format("{}:", groups_.newest().version);
    for (const control::PeerMember& member : groups_.newest().members) {
        text += fmt::format(" {}", member.address);
    }
    schedule_.say("sends group " + text);
    timeline_.on_group(schedule_.passed(), text);
    find_owners();
    for (Pod& pod : pods_) {
        send_group(pod, groups_.newest());
    }
}

void World::find_owners() {
    std::vector<std::string> names;
    for (const control::PeerMember& member : groups_.newest().members) {
        names.push_back(member.node);
    }
    owners_.assign(plan_.samples, "");
    own_bytes_.clear();
    if (names.empty()) {
        return;
    }
    const domain::ManifestView& manifest = dataset_->manifest();
    const sidecar::Placement placement{
        sidecar::SampleSizes{manifest},
        [&manifest](sidecar::SampleIndex sample) {
            return manifest.sample(domain::SampleId{sample}).key;
        },
        names,
        0};
    for (std::uint64_t id = 0; id < plan_.samples; ++id) {
        owners_[id] = names[placement.owner(static_cast<sidecar::SampleIndex>(id))];
        own_bytes_[owners_[id]] += Bytes{domain::record_bytes(oracle_->payload(id).size())};
    }
}

std::vector<std::uint64_t> World::shares() const {
    std::vector<std::uint64_t> found;
    for (const control::PeerMember& member : group().members) {
        found.push_back(static_cast<std::uint64_t>(std::ranges::count(owners_, member.node)));
    }
    return found;
}

// Whether all leaders are members of the newest group and know it, and no fault of the network is
// active.
bool World::have_peers_settled() const {
    std::size_t leaders = 0;
    for (const Node& node : nodes_) {
        const bool has_owner = std::ranges::any_of(pods_, [&node](const Pod& pod) {
            return pod.node == &node && pod.job->guest_of.empty();
        });
        const Pod* const leads = leader_of(node, true);
        if (has_owner && (leads == nullptr || !knows_its_peers(*leads))) {
            return false;
        }
        leaders += has_owner ? 1 : 0;
    }
    return leaders == group().members.size() && !network_->is_faulty();
}

bool World::knows_its_peers(const Pod& leader) const {
    const sidecar::LeaderStatus status = leader.sidecar->leader()->status();
    const bool is_member = std::ranges::any_of(group().members, [&](const auto& member) {
        return member.node == leader.node->name && member.address == status.peer_address &&
               member.generation == status.peer_generation;
    });
    return is_member && is_well(leader, seconds{2}) && !leader.has_bad_leaf && !leader.refused_at &&
           leader.group_version == group().version;
}

// Whether the peers have settled, and no other fault has had effects lately.
bool World::are_peers_calm() const {
    return schedule_.now() - unsettled_at_ > kPeersSettled &&
           std::ranges::all_of(nodes_, [this](const Node& node) { return is_calm(node); });
}

// Call it when a leader requests a sample from the origin.
void World::note_origin_fetch(Node& node, std::uint64_t sample) {
    if (network_ == nullptr || !are_peers_calm()) {
        return;
    }
    ++oracle_->counts["fetches among settled peers"];
    if (owners_[sample] != node.name) {
        ++node.stray_fetches;
        ++oracle_->counts["of them, by a node that does not own the sample"];
    } else if (keeps_its_own(node) && ++node.own_fetches[sample] > 1) {
        oracle_->accuse(fmt::format(
            "{} fetches its own sample {} again, and its grant has room for all of them",
            node.name,
            sample));
    }
}

// Whether the grant has had room, for 2 s, for all samples that the node owns and for a window that
// borrows from it.
bool World::keeps_its_own(const Node& node) const {
    Bytes window{};
    for (const Pod& pod : pods_) {
        window = std::max(window, pod.config.datasets[0].window_bytes);
    }
    const auto own = own_bytes_.find(node.name);
    return own != own_bytes_.end() && own->second + window <= node.grant.resident_bytes &&
           schedule_.now() - node.granted_at > seconds{2};
}

// A settled leader requests a sample of another owner from the origin only if it has counted a
// hedge or a failure.
void World::check_strays(Node& node) {
    const Pod* const leads = leader_of(node, true);
    const sidecar::LeaderStatus status =
        leads == nullptr ? sidecar::LeaderStatus{} : leads->sidecar->leader()->status();
    const std::uint64_t excused = status.peer_hedges + status.peer_failures;
    if (!are_peers_calm()) {
        node.own_fetches.clear();
        node.stray_fetches = 0;
        node.excused_before = excused;
    } else if (node.stray_fetches > excused - node.excused_before) {
        oracle_->accuse(fmt::format(
            "{} has fetched {} samples of other nodes at the origin, and counted {} hedges and "
            "failures",
            leads->sidecar->name(),
            node.stray_fetches,
            excused - node.excused_before));
    }
}

// A leader counts no more bytes from peers than have arrived at its node.
void World::check_crossed(const Node& node) {
    const Pod* const leads = leader_of(node, true);
    if (leads != nullptr &&
        leads->sidecar->leader()->status().peer_bytes_read > network_->payload_bytes(node.name)) {
        oracle_->accuse(leads->sidecar->name() + " counts more bytes from peers than it got");
    }
}

}  // namespace stoker::world
