#include "sidecar/core/revision_gate.h"

namespace stoker::sidecar {

RevisionGate::Verdict RevisionGate::judge(
    domain::RevisionId revision, bool can_list, TimePoint now) {
    const Verdict verdict = decide(revision, can_list, now);
    has_changed_ = verdict == Verdict::kChanged;
    if (verdict == Verdict::kGo) {
        given_ = revision;
    }
    return verdict;
}

RevisionGate::Verdict RevisionGate::decide(
    domain::RevisionId revision, bool can_list, TimePoint now) {
    if (pinned_) {
        if (*pinned_ == revision) {
            return Verdict::kGo;
        }
        if (!can_list || given_ || listed_again_) {
            return Verdict::kChanged;
        }
        listed_again_ = true;
        return Verdict::kListAgain;
    }
    if (!is_pinned_ || given_ == revision) {
        return Verdict::kGo;
    }
    if (!waits_until_) {
        waits_until_ = now + patience_;
    }
    return now < *waits_until_ ? Verdict::kWait : Verdict::kGo;
}

}  // namespace stoker::sidecar
