#pragma once

#include <map>
#include <string>
#include <utility>

#include "operator/core/allocation/claim_table.h"

// Reads of one dataset that jobs and nodes share. Private to claim_table.cc. Pure.
namespace stoker::control {

using ClaimsByPlace = std::map<std::pair<std::size_t, std::string>, Claim>;  // by node, uid

// Windowed jobs with the same dataset and node share each fetch: a byte that is not resident is
// fetched once per epoch of the fastest of them. Jobs on other nodes do not share it.
void share_fetches(const ClaimTable& table, ClaimsByPlace& claims);

// For nodes that fetch a dataset from each other (view.peers): lets each claim cover the samples
// that its node owns, with the reads of these samples by all jobs on the peers' nodes. Jobs
// without a pod on the node become its users with `remote`. Needs the table's nodes and jobs, and
// the users of each claim by job; keeps that order. Groups of one node, and unknown nodes, change
// nothing; nor do the largest groups, if all groups of the pool together are too much work for a
// plan: each node of such a group is planned as if it had no peers.
void pool_peers(const AllocationView& view, const ClaimTable& table, ClaimsByPlace& claims);

}  // namespace stoker::control
