#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "node/disk/pool_directory.h"
#include "node/mount/mounts.h"
#include "proto/node/v1/node.pb.h"

namespace stoker::node {

// Executes the operator's orders on this node: creates the pools' directories, measures them,
// sweeps. Keeps no state across restarts; the operator repeats its orders. Not thread-safe.
class PoolKeeper {
public:
    static constexpr Duration kMeasureEvery = std::chrono::seconds{60};

    struct Parts {
        Mounts& mounts;
        const Clock& clock;
        int host_root;  // an open folder
        SidecarUser user;
    };

    explicit PoolKeeper(Parts parts)
        : parts_(parts) {}

    // Fills in the report to the operator. Opens every pool; measures a pool if that is due.
    void fill(v1::NodeReport& report);

    // Executes the operator's response: opens its pools, and performs at most one sweep, which ends
    // before this function returns.
    void take(const v1::NodeOrders& orders);

private:
    struct Pool {
        std::string path;
        std::vector<DirectoryUse> directories;
        TimePoint measured_at{};
        bool measured = false;
    };

    void look(const std::string& name, Pool& pool, v1::PoolState& state);
    void measure(const PoolDirectory& directory, Pool& pool) const;
    void sweep(const v1::SweepOrder& order);

    Parts parts_;
    std::map<std::string, Pool> pools_;
    std::map<std::string, v1::SweepResult> sweeps_;  // by id, until the operator has confirmed them
};

}  // namespace stoker::node
