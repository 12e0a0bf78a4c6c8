#pragma once

#include "wire/control/orders.h"
#include "wire/control/report.h"

namespace stoker::control::v1 {
class Hello;
class OperatorMessage;
class PeerRequest;
class Report;
class SidecarMessage;
}  // namespace stoker::control::v1

// Converts between proto/control/v1 and the values of wire/control, for both programs. Does not
// validate sidecars' data; operator/sidecars/report_rules.h does. Pure, thread-safe.
namespace stoker::control {

v1::SidecarMessage encode(const Hello& hello);
Hello decode(const v1::Hello& hello);

// Encodes a sidecar's messages. Texts must be UTF-8.
v1::SidecarMessage encode(const Report& report);

// Decodes a report. A time beyond the type's range becomes negative.
Report decode(const v1::Report& report);

v1::SidecarMessage encode(const PeerRequest& request);
PeerRequest decode(const v1::PeerRequest& request);

v1::OperatorMessage encode(const Orders& orders);

// Decodes orders. Drops weights that are not finite numbers of 0 or more, pins with an invalid
// revision, and marks beyond the limit.
Orders decode(const v1::OperatorMessage& message);

}  // namespace stoker::control
