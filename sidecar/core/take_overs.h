#pragma once

#include <algorithm>

namespace stoker::sidecar {

// Decides whether a node that lacks an own sample asks one other node for it before the origin, by that
// node's answers so far. A node that has joined a group finds its samples at their former owners; nodes
// that begin together find nothing, and must not go on asking. Questions without an answer change
// nothing.
//
// A lack costs a round trip, a sample saves a request to the origin; so one sample in nine is worth the
// questions. Pure, not thread-safe.
class TakeOvers {
public:
    static constexpr int kLacks = 8;   // of a node that has sent no sample yet
    static constexpr int kEarned = 8;  // further lacks for each sample that it sends
    static constexpr int kLacksMax = 64;

    // False: the node is passed over.
    [[nodiscard]] bool may_ask() const { return lacks_left_ > 0; }

    // The node sent an intact sample.
    void note_had() { lacks_left_ = std::min(lacks_left_ + kEarned, kLacksMax); }

    // The node said that it does not have the sample, or sent wrong bytes.
    void note_lacked() { --lacks_left_; }

private:
    int lacks_left_ = kLacks;  // below 0: by questions that were in flight
};

}  // namespace stoker::sidecar
