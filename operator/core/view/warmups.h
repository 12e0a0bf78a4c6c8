#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/dataset.h"
#include "operator/api/dataset_warmup.h"
#include "operator/api/node.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/workload/build_filler.h"

// The demands of DatasetWarmups on nodes: fillers, grants and orders to fill (docs/adr/0024). Pure.
namespace stoker::control {

// Conditions of a DatasetWarmup.
inline constexpr std::string_view kWarmupComplete = "Complete";
inline constexpr std::string_view kWarmupFailed = "Failed";

// The fillers of all nodes should run before any of them fetches, so that each knows which samples
// it owns. A warm-up waits for them this long after its start.
inline constexpr Duration kWarmupStartWait = std::chrono::seconds{60};

// Complete or Failed.
bool is_finished(const DatasetWarmup& warmup);

// Whether its nodes are being filled: they are chosen, and it is neither finished nor suspended nor
// being deleted.
bool is_filling(const DatasetWarmup& warmup);

// Whether it needs its fillers: it is_filling(), or it has finished less than its ttl ago.
bool needs_fillers(const DatasetWarmup& warmup, WallTime now);

// Whether both states of a warm-up ask the same of nodes, fillers and grants: only numbers and
// messages differ.
bool asks_the_same(const DatasetWarmup& a, const DatasetWarmup& b);

// The places of the fillers that the warm-ups of this Dataset need: none on nodes that are Gone.
std::set<FillerPlace> warmup_places(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups, WallTime now);

// The places that warm-ups of this Dataset are filling (is_filling()): none on nodes that are Gone.
std::set<FillerPlace> open_places(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups);

// By place: start of the newest scheduled run that fills it. The place's filler must list the
// origin after that time.
std::map<FillerPlace, WallTime> runs_by_place(
    const Dataset& dataset, const std::vector<DatasetWarmup>& warmups);

// The nodes of one Dataset and pool that must have a grant: nodes with fillers that warm-ups need,
// and nodes whose leader still has an order to fill, so that the operator can tell it to stop.
// Without a grant a filler exits after kFillerIdleSeconds, and no sweep takes its bytes.
std::set<std::string> filling_nodes(
    const Dataset& dataset,
    const std::string& pool,
    const std::vector<DatasetWarmup>& warmups,
    const std::vector<SidecarReport>& reports,
    WallTime now);

// Sets Grant::fill of the places that are being filled. A warm-up's rate limit is divided evenly
// among its nodes that are neither Done nor Gone nor Lost. In a pool with an origin bandwidth, its
// fills share evenly what its jobs leave (FillOrigin). A node gets the order once its leader has
// listed the origin and knows the group of peers that it is in, and all other nodes of the warm-up
// have, or kWarmupStartWait is over. `groups`: as sent, by dataset uid.
void order_fills(
    const ClusterView& cluster,
    const std::map<std::string, PeerGroup>& groups,
    const std::vector<FillOrigin>& origins,
    const Moment& now,
    std::vector<Grant>& grants);

// Chooses the nodes of a warm-up: ready nodes of the pool that its spec allows. The `count` that hold most
// bytes of the Dataset, then by name.
std::vector<std::string> choose_nodes(
    const DatasetWarmupSpec& spec,
    const CachePool& pool,
    const std::vector<Node>& nodes,
    const Dataset& dataset);

// Whether one of the sweeps may make room for the warm-up's grants: on one of its nodes, or of a
// Dataset of its namespace, with which it shares a quota. `datasets`: those of the namespace.
bool makes_room(
    const std::vector<Sweep>& sweeps,
    const DatasetWarmup& warmup,
    const std::vector<Dataset>& datasets);

// Resolves the warm-up's CachePool like that of a TrainingJob of the same namespace.
ResolvedPool resolve_pool(
    const DatasetWarmup& warmup,
    const std::vector<CachePool>& pools,
    const std::vector<CacheQuota>& quotas);

}  // namespace stoker::control
