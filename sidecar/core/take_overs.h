#pragma once

#include <algorithm>
#include <map>
#include <string>

namespace stoker::sidecar {

// Decides whether a node that lacks an own sample asks another node for it before the origin, by the
// answers to the samples asked so far. A node that has joined a group finds its samples at their
// former owners; a node that began together with the others finds nothing, and must not go on
// asking.
//
// At first kCredit samples may be asked in vain. Each one that the other node had earns one more,
// up to kCreditMost; asked samples that are not answered count as asked in vain. A node that had
// kNodeCredit fewer samples than it lacked is passed over: it may have joined, too. The credit lasts
// as long as this object and is not renewed when the group changes. Pure, not thread-safe.
class TakeOvers {
public:
    static constexpr int kCredit = 64;
    static constexpr int kCreditMost = 1024;
    static constexpr int kNodeCredit = 8;

    // Whether one more sample may be asked of any node.
    [[nodiscard]] bool may_ask() const { return asked_ < credit_; }

    // Whether the node is not passed over.
    [[nodiscard]] bool may_ask(const std::string& node) const {
        const auto found = lacked_.find(node);
        return found == lacked_.end() || found->second < kNodeCredit;
    }

    // A sample is asked of a node; note_end() must follow.
    void note_asked() { ++asked_; }

    // `had`: the node has sent the sample. False: it has refused, is late or has failed.
    void note_end(const std::string& node, bool had) {
        const int earned = had ? 1 : -1;
        --asked_;
        credit_ = std::min(credit_ + earned, kCreditMost);
        int& lacked = lacked_[node];
        lacked = std::max(lacked - earned, -kCreditMost);
    }

private:
    int credit_ = kCredit;
    int asked_ = 0;                      // and not ended
    std::map<std::string, int> lacked_;  // by node: samples that it lacked, less those that it had
};

}  // namespace stoker::sidecar
