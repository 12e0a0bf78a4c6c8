#pragma once

#include "operator/api/node_report.h"

namespace stoker::node::v1 {
class NodeOrders;
class NodeReport;
}  // namespace stoker::node::v1

// Converts between proto/node/v1 and plain values. No validation here; node_rules.h does that.
// Pure, thread-safe.
namespace stoker::control {

NodeReport decode(const node::v1::NodeReport& report);
node::v1::NodeOrders encode(const NodeOrders& orders);

}  // namespace stoker::control
