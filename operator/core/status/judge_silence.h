#pragma once

#include <vector>

#include "operator/core/status/summarize_warmup.h"

// Silent sidecars on the nodes of a DatasetWarmup. Pure.
namespace stoker::control {

// How long no sidecar of the node has reported, counted from this operator's start at the earliest:
// it does not know which nodes were silent before.
Duration silence_of(const WarmupNodeStatus& node, const WarmupView& view, const Moment& now);

// The condition Reporting: false while a node is silent for kReportAgeMax. Precondition: the view has
// a Dataset.
Condition judge_silence(
    const std::vector<WarmupNodeStatus>& nodes, const WarmupView& view, const Moment& now);

}  // namespace stoker::control
