#pragma once

#include <algorithm>

namespace stoker::sidecar {

// Decides whether a node that lacks an own sample asks one other node for it before the origin, by
// that node's answers so far. A node that has joined a group finds its samples at their former
// owners; nodes that started together find nothing there and must stop asking. Requests without an
// answer change nothing.
//
// A "lack" answer costs a round trip, a sample saves a request to the origin; asking pays if at
// least one sample in nine is found. Pure, not thread-safe.
class TakeOvers {
public:
    static constexpr int kLacks = 8;   // "lack" answers from a node that sent nothing
    static constexpr int kEarned = 8;  // further ones for each sample that the node sends
    static constexpr int kLacksMax = 64;

    // Whether to ask the node. False: ask the origin instead.
    [[nodiscard]] bool may_ask() const { return lacks_left_ > 0; }

    // The node sent an intact sample.
    void note_had() { lacks_left_ = std::min(lacks_left_ + kEarned, kLacksMax); }

    // The node said that it does not have the sample, or sent wrong bytes.
    void note_lacked() { --lacks_left_; }

private:
    int lacks_left_ = kLacks;  // below 0: requests were in flight at 0
};

}  // namespace stoker::sidecar
