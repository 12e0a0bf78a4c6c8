#include <set>
#include <sstream>

#include <fmt/format.h>

#include "tests/world/control_world.h"

// The oracle's checks of groups of peers and their certificates.
namespace stoker::world {

namespace {

using std::chrono::seconds;

// A lost leader stays in its group for 30 s after the operator learns of its end: 35 s later, if
// its stream is broken, or by the first report of the restarted sidecar, which may be 10 s late and
// stall for 30 s more. Longer than the sum, 105 s.
constexpr Duration kLedWithin = seconds{120};

}  // namespace

// A group that a sidecar gets: its version rises, it names each node once, and no guest gets one.
void ControlWorld::check_group(ControlSidecar& sidecar, const control::PeerGroup& group) {
    const std::string where = fmt::format("group {} of {}", group.version, group.dataset_uid);
    for (const ControlSidecar::Dataset& dataset : sidecar.datasets()) {
        if (dataset.uid == group.dataset_uid && dataset.guest) {
            accuse(where + " is sent to a guest");
        }
        if (dataset.uid == group.dataset_uid && group.version <= dataset.group.version) {
            accuse(fmt::format("{} follows {}", where, dataset.group.version));
        }
    }
    std::set<std::string> nodes;
    for (const control::PeerMember& member : group.members) {
        if (!nodes.insert(member.node).second) {
            accuse(where + " names " + member.node + " twice");
        }
    }
    count("groups of peers");
}

// The groups that the operator sends: every member leads its node's directory, or did shortly before.
void ControlWorld::check_groups() {
    for (auto& [name, node] : cluster_->nodes()) {
        for (auto& [uid, directory] : node.directories) {
            if (directory.leader != nullptr) {
                directory.led_until[directory.generation] = schedule_.now();
            }
            const auto group =
                leader() == nullptr ? std::nullopt : leader()->manager().registry().peer_group(uid);
            for (const control::PeerMember& member :
                 group ? group->members : std::vector<control::PeerMember>{}) {
                const auto led = directory.led_until.find(member.generation);
                if (member.node == name && (led == directory.led_until.end() ||
                                            schedule_.now() - led->second > kLedWithin)) {
                    accuse(fmt::format(
                        "group {} of {} has a member on {} that does not lead",
                        group->version,
                        uid,
                        name));
                }
            }
        }
    }
}

// A peer certificate names only datasets of the pod's own namespace that the pod mounts.
void ControlWorld::check_certificate(ControlSidecar& sidecar, const std::string& uris) {
    std::set<std::string> allowed;
    for (const ControlSidecar::Dataset& dataset : sidecar.datasets()) {
        if (!dataset.guest) {
            allowed.insert(fmt::format(
                "stoker://namespace/{}/dataset/{}", sidecar.job().pod_namespace, dataset.uid));
        }
    }
    std::istringstream lines{uris};
    for (std::string uri; std::getline(lines, uri);) {
        if (!allowed.contains(uri)) {
            accuse("pod " + sidecar.job().pod + " gets a certificate for " + uri);
        }
    }
    count("peer certificates");
}

// Empty if each sidecar's group consists of its dataset's present leaders; else the name of a pod
// whose sidecar has another group.
std::string ControlWorld::peer_unrest() {
    std::map<std::string, std::vector<std::string>> leaders;  // nodes by dataset, sorted
    for (const auto& [name, node] : cluster_->nodes()) {
        for (const auto& [uid, directory] : node.directories) {
            if (directory.leader != nullptr && directory.leader->is_attached()) {
                leaders[uid].push_back(fmt::format("{} {}", name, directory.generation));
            }
        }
    }
    for (const auto& [key, pod] : cluster_->pods()) {
        for (const auto& dataset :
             pod.sidecar ? pod.sidecar->datasets() : std::vector<ControlSidecar::Dataset>{}) {
            std::vector<std::string> members;
            for (const control::PeerMember& member : dataset.group.members) {
                members.push_back(fmt::format("{} {}", member.node, member.generation));
            }
            if (dataset.peers && datasets_.contains(dataset.uid) &&
                members != leaders[dataset.uid]) {
                return fmt::format("pod {} has not the present group of {}", key.name, dataset.uid);
            }
        }
    }
    return "";
}

}  // namespace stoker::world
