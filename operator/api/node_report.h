#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"

// Reports of node programs and the operator's answers as plain values: proto/node/v1/node.proto
// without gRPC. operator/sidecars transports them, operator/core decides on them.
namespace stoker::control {

enum class PoolVerdict : std::uint8_t {
    kUnknown,
    kReady,
    kNotEmpty,
    kOtherPool,
    kRefused,
    kFailed
};

// "Ready", "NotEmpty", "OtherPool", "PathRefused", "Failed", "Unknown".
std::string_view to_string(PoolVerdict verdict);

// The bytes of one dataset on a node.
struct DirectoryUse {
    std::string ns;
    std::string dataset_uid;
    Bytes bytes{};         // allocated blocks
    bool mounted = false;  // into a pod

    bool operator==(const DirectoryUse&) const = default;
};

// One pool's directory on a node.
struct PoolState {
    std::string pool;
    std::string path;
    PoolVerdict verdict = PoolVerdict::kUnknown;
    std::string message;  // for people, if the directory is not ready
    Bytes capacity{};     // of the file system
    Bytes free{};
    std::vector<DirectoryUse> directories;

    bool operator==(const PoolState&) const = default;
};

struct SweepResult {
    std::string id;
    bool succeeded = false;
    std::string message;        // for people, if the sweep did not succeed
    std::uint64_t removed = 0;  // number of node directories

    bool operator==(const SweepResult&) const = default;
};

struct NodeReport {
    std::string node;
    std::string boot_id;
    std::string version;
    std::vector<PoolState> pools;
    std::vector<SweepResult> sweeps;
    TimePoint received_at{};
    WallTime received_wall{};

    bool operator==(const NodeReport&) const = default;
};

// The last report of each node's program, by node. A report can hold 10,000 directories, so it is
// shared and immutable.
using NodeReports = std::map<std::string, std::shared_ptr<const NodeReport>>;

// A node program that was silent for longer than this gets no new work.
inline constexpr Duration kNodeSilenceMax = std::chrono::seconds{60};

struct PoolOrder {
    std::string pool;
    std::string path;

    bool operator==(const PoolOrder&) const = default;
};

struct SweepOrder {
    std::string id;
    std::string pool;
    std::string path;
    std::vector<std::string> kept;     // "<namespace>/<uid>"
    std::vector<std::string> expired;  // uids

    bool operator==(const SweepOrder&) const = default;
};

struct NodeOrders {
    std::vector<PoolOrder> pools;
    std::optional<SweepOrder> sweep;
    std::uint32_t next_call_seconds = 0;
    std::vector<std::string> confirmed_sweeps;  // ids

    bool operator==(const NodeOrders&) const = default;
};

}  // namespace stoker::control
