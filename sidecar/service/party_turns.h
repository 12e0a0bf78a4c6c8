#pragma once

#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "sidecar/core/sample_table.h"

namespace stoker::sidecar {

// Long work of guests: one piece of each party at a time, so that one guest's does not hold up
// everybody's. Our own party's is never put off. Belongs to the loop's thread.
class PartyTurns {
public:
    // Calls `begin`, now or when the party's work before it has ended. Each has an end().
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
    std::map<Party, std::deque<std::function<void()>>> waiting_;  // the first of each runs
};

}  // namespace stoker::sidecar
