#pragma once

#include <vector>

#include "operator/core/status/summarize_warmup.h"

// Silent sidecars on the nodes of a DatasetWarmup. Pure.
namespace stoker::control {

// How long no sidecar of the node has reported, as far as this operator knows: one that has just
// begun to listen does not know who was silent before.
Duration silence_of(const WarmupNodeStatus& node, const WarmupView& view, const Moment& now);

// The condition Reporting: false while a node is silent for kReportAgeMax. Precondition: the view has
// a Dataset.
Condition judge_silence(
    const std::vector<WarmupNodeStatus>& nodes, const WarmupView& view, const Moment& now);

}  // namespace stoker::control
