#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/condition.h"
#include "operator/api/dataset.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/spec/moment.h"

// Judges the traffic between a Dataset's nodes for its status. Pure.
namespace stoker::control {

inline constexpr std::string_view kPeersReachable = "PeersReachable";

// nullopt: the group has fewer than two nodes. `group`: as sent to the sidecars. `reports`: reduced
// to the dataset.
std::optional<DatasetPeersStatus> measure_peers(
    const std::string& dataset_uid,
    const std::optional<PeerGroup>& group,
    const std::vector<SidecarReport>& reports);

// The condition PeersReachable; nullopt: the group has fewer than two nodes. False if many of a
// node's connections to other nodes failed, and it has never got a sample.
std::optional<Condition> judge_peers(
    const std::string& dataset_uid,
    const std::optional<PeerGroup>& group,
    const std::vector<SidecarReport>& reports,
    const Moment& now);

}  // namespace stoker::control
