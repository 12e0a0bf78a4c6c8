#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/cache_pool.h"
#include "operator/api/dataset.h"
#include "operator/api/dataset_warmup.h"
#include "operator/api/node.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/spec/moment.h"
#include "operator/core/spec/resolve.h"

namespace stoker::control {

struct WarmupView {
    DatasetWarmup warmup;
    std::optional<Dataset> dataset;       // none: it does not exist
    ResolvedPool pool;                    // pool to choose nodes from, while none are chosen
    std::optional<CachePool> cache_pool;  // status.pool, or `pool` without chosen nodes
    std::vector<Node> nodes;              // of the cluster
    std::vector<SidecarReport> reports;   // from the Dataset's sidecars, but not from guests'
    // Whether full grants may still grow: either the operator has not heard all sidecars yet (no
    // grant grows before that), or sweeps are going to make room (makes_room()).
    bool room_may_come = false;
    // Time when this operator began to hear sidecars; none: silence is not counted.
    std::optional<TimePoint> listening_since{};
    bool jobs_use_origin = false;  // jobs need all of the pool's originBandwidth
};

// If some bytes do not fit the grants for so long, the warm-up is Complete without them. It waits
// because grants react with a delay to a Dataset's new size and to the end of other jobs.
inline constexpr Duration kWarmupFullFor = std::chrono::seconds{30};

// A ready node whose sidecar is silent for so long is Lost.
inline constexpr Duration kWarmupNodeLostAfter = std::chrono::minutes{10};

// A chosen node that is not ready for so long is Gone.
inline constexpr Duration kWarmupNodeGoneAfter = std::chrono::minutes{10};

// Computes the present status of a DatasetWarmup, and chooses its nodes once. Complete: every sample
// that its nodes own is resident by their leaders' reports, or has no room in the grants, which the
// condition Fits and the message of Complete say. Failed: samples are refused, or nodes are Gone or
// Lost. Reporting: false while a ready node's sidecar is silent for kReportAgeMax. A finished warm-up
// keeps its status.
DatasetWarmupStatus summarize_warmup(const WarmupView& view, const Moment& now);

}  // namespace stoker::control
