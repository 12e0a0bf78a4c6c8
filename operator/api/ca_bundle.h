#pragma once

#include <string>

#include "operator/api/choices.h"

namespace stoker::control {

// The key of a ConfigMap or Secret that holds certificates (PEM) to trust at an origin. In the
// namespace of the pods that read it.
struct CaBundle {
    BundleKind kind = BundleKind::kConfigMap;
    std::string name;
    std::string key = "ca.crt";

    bool operator==(const CaBundle&) const = default;
};

}  // namespace stoker::control
