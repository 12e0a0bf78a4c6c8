// Lines of a seed's timeline about the nodes.
#include <utility>

#include "tests/world/world.h"

namespace stoker::world {

void World::note_node(const Node& node) {
    Moment moment;
    moment.at = schedule_.passed();
    moment.node = node.name;
    moment.grant = node.grant.resident_bytes;
    if (const Pod* const leads = leader_of(node, false); leads != nullptr) {
        moment.leader = leads->sidecar->name();
        moment.lead = node.lead_count;
        moment.is_ready = leads->is_ready_leader();
        if (moment.is_ready) {
            const sidecar::LeaderStatus status = leads->sidecar->leader()->status();
            moment.resident = status.bytes.resident;
            moment.window = status.bytes.window;
            moment.fetched = status.origin_bytes_read;
            moment.from_peers = status.peer_bytes_read;
        }
    }
    timeline_.moments.push_back(moment);
}

// Counts the node's leads. A process that lets the lead go rests before it leads again, so two of its
// leads never look like one.
void World::note_lead(Node& node) {
    const Pod* const leads = leader_of(node, false);
    const std::string name = leads == nullptr ? "" : leads->sidecar->name();
    if (std::exchange(node.leads, name) != name) {
        node.lead_count += name.empty() ? 0 : 1;
        note_node(node);
    }
}

}  // namespace stoker::world
