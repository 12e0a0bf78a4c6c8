#pragma once

#include <memory>

#include "sidecar/config/sidecar_config.h"
#include "sidecar/core/eviction/eviction_policy.h"

namespace stoker::sidecar {

// The policy of a kind, knowing nothing yet. nullptr: kAuto, by what the jobs find important.
std::unique_ptr<EvictionPolicy> make_eviction(EvictionKind kind);

}  // namespace stoker::sidecar
