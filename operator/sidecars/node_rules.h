#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/result.h"
#include "operator/api/node_report.h"
#include "operator/sidecars/authenticator.h"
#include "operator/sidecars/text_bounds.h"

// Validation of node programs' reports. A node program is privileged on its own node only. Texts,
// lists and numbers are bounded, so that a compromised node can harm only itself. Pure,
// thread-safe.
namespace stoker::control {

inline constexpr std::size_t kNodePoolCountMax = 64;
inline constexpr std::size_t kNodeDirectoryCountMax = 10'000;  // of one pool
inline constexpr std::size_t kNodeSweepCountMax = 64;
inline constexpr std::size_t kNodePathBytesMax = 4096;  // as PATH_MAX
inline constexpr std::uint64_t kNodeNumberMax = 1ULL << 56U;

// kInvalidArgument: a missing, empty or overlong name, too many entries, a duplicate pool, or a
// number beyond kNodeNumberMax.
Status validate_node_report(const NodeReport& report);

// Cuts messages to kMessageBytesMax, between characters.
void trim_texts(NodeReport& report);

// The account that may speak for nodes.
struct NodeProgramAccount {
    std::string ns;  // the operator's own
    std::string service_account;
};

// kForbidden: any other pod's token.
Status check_node_program(const PodIdentity& identity, const NodeProgramAccount& account);

// `pod_node`: the node of that pod from the cluster cache, or "". kForbidden: the report is about
// another node than the pod's. kUnavailable: the pod's node is not known yet.
Status check_node(
    const PodIdentity& identity, const std::string& pod_node, const std::string& reported);

}  // namespace stoker::control
