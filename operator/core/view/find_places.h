#pragma once

#include <vector>

#include "operator/core/allocation/grant_book.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"

namespace stoker::control {

// All known places of datasets on nodes, for GrantBook: nodes with pods of active jobs, nodes where
// a fresh report claims to lead (of two, the newer one counts), and existing nodes in the Datasets'
// statuses. Only sidecars of the Dataset's own namespace, including its fillers, take grants: a
// place with guests' pods only is not reached, and guests' reports on the directory are ignored.
// Pure; the order of the cluster's lists does not matter.
std::vector<ObservedResidency> find_places(const ClusterView& cluster, const Moment& now);

// Time of the last report of a sidecar with the dataset, from the dataset's status.
WallTime last_use_of(const Dataset& dataset);

}  // namespace stoker::control
