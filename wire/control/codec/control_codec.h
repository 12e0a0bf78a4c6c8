#pragma once

#include "wire/control/orders.h"
#include "wire/control/report.h"

namespace stoker::control::v1 {
class Hello;
class OperatorMessage;
class Report;
class SidecarMessage;
}  // namespace stoker::control::v1

// Between proto/control/v1 and the values of wire/control, for both programs. What a sidecar sends
// is not judged here; operator/sidecars/report_rules.h does that. Pure, thread-safe.
namespace stoker::control {

v1::SidecarMessage encode(const Hello& hello);
Hello decode(const v1::Hello& hello);

// Texts have to be UTF-8.
v1::SidecarMessage encode(const Report& report);

// A time beyond the type becomes negative.
Report decode(const v1::Report& report);

v1::OperatorMessage encode(const Orders& orders);

// Left out: weights that are not numbers of 0 or more, pins whose revision is none, and marks that
// are too many.
Orders decode(const v1::OperatorMessage& message);

}  // namespace stoker::control
