// The parts of a node's window that its namespaces have, for the checks.
#include <algorithm>
#include <set>

#include "common/domain/segment_format.h"
#include "tests/world/world.h"

namespace stoker::world {

// The smallest window of the owner's pods on the node. Zero: there are none.
Bytes World::window_on(const Node& node) const {
    Bytes window = Bytes::unlimited();
    for (const Pod& pod : pods_) {
        if (pod.node == &node && pod.job->guest_of.empty()) {
            window = std::min(window, pod.config.datasets[0].window_bytes);
        }
    }
    return window.is_unlimited() ? Bytes{} : window;
}

std::set<std::string> World::guests_on(const Node& node) const {
    std::set<std::string> guests;
    for (const Pod& pod : pods_) {
        if (pod.node == &node && !pod.job->guest_of.empty()) {
            guests.insert(pod.job->guest_of);
        }
    }
    return guests;
}

// Share of the reader's namespace in the smallest window on its node. Peers take a quarter of the
// window first. Then the owner has all of the rest or, beside guests, half of it; the guests'
// namespaces divide the other half. Zero: the node has no pod of the owner.
Bytes World::window_part(const Pod& reader) const {
    const std::uint64_t window = window_on(*reader.node).count();
    const std::uint64_t bytes = window - (network_ == nullptr ? 0 : window / 4);
    const std::size_t guests = guests_on(*reader.node).size();
    const std::uint64_t readers = reader.job->guest_of.empty() ? 1 : guests;
    return Bytes{guests == 0 ? bytes : bytes / 2 / readers};
}

// The part of window_part() that is there in any case: each other party may exceed its own part by
// one sample, if it has no other.
Bytes World::assured_part(const Pod& reader) const {
    const Bytes largest = largest_record();
    Bytes assured = window_part(reader);
    std::set<std::string> others;
    for (const Pod& pod : pods_) {
        if (pod.node == reader.node && pod.job->guest_of != reader.job->guest_of &&
            others.insert(pod.job->guest_of).second) {
            assured -= largest - window_part(pod);
        }
    }
    return network_ == nullptr ? assured
                               : assured - (largest - Bytes{window_on(*reader.node).count() / 4});
}

// Whether a pod of the owner can lead on the guest's node, and each sample fits into the guest's
// share of the window.
bool World::can_serve_guest(const Pod& guest) const {
    return largest_record() <= window_part(guest);
}

Bytes World::largest_record() const {
    return Bytes{domain::record_bytes(oracle_->dataset().manifest().largest_sample_bytes())};
}

}  // namespace stoker::world
