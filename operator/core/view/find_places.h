#pragma once

#include <vector>

#include "operator/core/allocation/grant_book.h"
#include "operator/core/spec/moment.h"
#include "operator/core/view/cluster_view.h"

namespace stoker::control {

// Every dataset on every node of which anything is known, for GrantBook: where active jobs have
// pods, where a sidecar that was heard of lately leads (of two that say so, the newer one is
// believed), and what the Datasets' statuses remember of nodes that still exist. Only sidecars of
// the Dataset's own namespace, among them its fillers, take grants: where only guests' pods are,
// nobody is reached, and what guests say of the directory counts for nothing. Pure; the order of
// the cluster's lists does not matter.
std::vector<ObservedResidency> find_places(const ClusterView& cluster, const Moment& now);

// When a sidecar was last heard of that had the dataset, as its status knows it.
WallTime last_use_of(const Dataset& dataset);

}  // namespace stoker::control
