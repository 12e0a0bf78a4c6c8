#pragma once

#include <cstdint>
#include <string>

#include "common/base/clock.h"
#include "common/base/prng.h"
#include "node/service/node_metrics.h"
#include "node/service/operator_link.h"
#include "node/service/pool_keeper.h"

namespace stoker::node {

// Reports to the operator and executes its orders, for ever. The operator sets the interval; while
// it does not respond, the loop retries every few seconds. Not thread-safe: one thread calls
// step().
class OperatorLoop {
public:
    static constexpr Duration kPaceMin = std::chrono::seconds{1};
    static constexpr Duration kPaceMax = std::chrono::minutes{5};
    static constexpr Duration kRetry = std::chrono::seconds{5};
    static constexpr Duration kCallLimit = std::chrono::seconds{10};

    struct Identity {
        std::string node;
        std::string boot_id;
    };

    // All parts must outlive this object.
    OperatorLoop(
        PoolKeeper& keeper,
        OperatorClient& client,
        Identity identity,
        std::uint64_t seed,
        NodeMetrics& metrics);

    // Sends one report and executes the response. Returns the pause before the next one.
    Duration step();

private:
    PoolKeeper& keeper_;
    OperatorClient& client_;
    Identity identity_;
    Prng prng_;
    NodeMetrics& metrics_;
    std::string told_;  // the last problem; each one is logged once
};

}  // namespace stoker::node
