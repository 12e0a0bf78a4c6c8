#pragma once

#include <string>

#include "operator/api/choices.h"

namespace stoker::control {

// The key of a ConfigMap or Secret with the CA certificates (PEM) of an origin, in the namespace of
// the pods that read it.
struct CaBundle {
    BundleKind kind = BundleKind::kConfigMap;
    std::string name;
    std::string key = "ca.crt";

    bool operator==(const CaBundle&) const = default;
};

}  // namespace stoker::control
