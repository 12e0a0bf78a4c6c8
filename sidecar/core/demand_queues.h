#pragma once

#include <deque>
#include <map>
#include <unordered_set>

#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

// The samples that each party demands and that are not on the node, oldest first: one queue a
// party, so that nobody waits behind what another party asks for. A sample stands once in a queue;
// it may be there by now, or be demanded no more. Not thread-safe.
class DemandQueues {
public:
    void push(Party party, SampleIndex sample) {
        Queue& queue = queues_[party];
        if (queue.known.insert(sample).second) {
            queue.samples.push_back(sample);
        }
    }

    [[nodiscard]] bool is_empty(Party party) const { return !queues_.contains(party); }

    [[nodiscard]] bool is_empty() const { return queues_.empty(); }

    // Precondition: the queue is not empty.
    [[nodiscard]] SampleIndex front(Party party) const { return queues_.at(party).samples.front(); }

    void pop(Party party) {
        const auto queue = queues_.find(party);
        queue->second.known.erase(queue->second.samples.front());
        queue->second.samples.pop_front();
        if (queue->second.samples.empty()) {
            queues_.erase(queue);
        }
    }

    // The party has left.
    void forget(Party party) { queues_.erase(party); }

private:
    struct Queue {
        std::deque<SampleIndex> samples;
        std::unordered_set<SampleIndex> known;
    };

    std::map<Party, Queue> queues_;  // none is empty
};

}  // namespace stoker::sidecar
