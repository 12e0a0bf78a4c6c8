#include "node/service/operator_loop.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log/log.h"

namespace stoker::node {

OperatorLoop::OperatorLoop(
    PoolKeeper& keeper,
    OperatorClient& client,
    Identity identity,
    std::uint64_t seed,
    NodeMetrics& metrics)
    : keeper_(keeper),
      client_(client),
      identity_(std::move(identity)),
      prng_(seed),
      metrics_(metrics) {}

Duration OperatorLoop::step() {
    v1::NodeReport report;
    report.set_node(identity_.node);
    report.set_boot_id(identity_.boot_id);
    report.set_version(STOKER_VERSION);
    keeper_.fill(report);
    const auto orders = client_.report(report, kCallLimit);
    metrics_.observe_report(report, orders.has_value());
    if (!orders) {
        if (std::exchange(told_, orders.error().message) != told_) {
            log::warning("no orders; mounting goes on", {{"reason", told_}});
        }
        return std::chrono::duration_cast<Duration>(kRetry * (0.5 + prng_.unit()));
    }
    if (!std::exchange(told_, {}).empty()) {
        log::info("the operator answers again");
    }
    keeper_.take(*orders);
    return std::clamp<Duration>(
        std::chrono::seconds{orders->next_call_seconds()}, kPaceMin, kPaceMax);
}

}  // namespace stoker::node
