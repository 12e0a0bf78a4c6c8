#pragma once

#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "sidecar/core/sample_table.h"

namespace stoker::sidecar {

// Runs long work of guests one after the other, per party (core/eviction/party.h), so that no guest
// delays other clients. The own party's work never waits. Use it on the loop's thread.
class PartyTurns {
public:
    // Calls `begin` now, or once the party's earlier work has ended. Each needs one end().
    void run(Party party, std::function<void()> begin) {
        if (party == kOwnParty) {
            begin();
            return;
        }
        auto& waiting = waiting_[party];
        waiting.push_back(std::move(begin));
        if (waiting.size() == 1) {
            waiting.front()();
        }
    }

    void end(Party party) {
        const auto turns = waiting_.find(party);
        if (turns == waiting_.end()) {
            return;
        }
        turns->second.pop_front();
        if (turns->second.empty()) {
            waiting_.erase(turns);
        } else {
            turns->second.front()();
        }
    }

private:
    std::map<Party, std::deque<std::function<void()>>> waiting_;  // the first of each is running
};

}  // namespace stoker::sidecar
