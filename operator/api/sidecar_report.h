#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "wire/control/orders.h"
#include "wire/control/report.h"

// Sidecars' last reports, and the pins for one attempt's sidecars.
namespace stoker::control {

// The last report of one sidecar and its arrival time. `pod`, `namespace_name` and `node` have been
// checked against its token.
struct SidecarReport : Hello, Report {
    TimePoint received_at{};
    WallTime received_wall{};
    bool attached = false;  // its stream is open now

    bool operator==(const SidecarReport&) const = default;
};

// The pins of one attempt of a TrainingJob.
struct AttemptPins {
    std::string job_uid;
    std::string pod_prefix;  // of the attempt's pods: "resnet-a2-"
    std::vector<RevisionPin> pins;

    bool operator==(const AttemptPins&) const = default;
};

}  // namespace stoker::control
