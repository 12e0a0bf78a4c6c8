#include "sidecar/service/make_eviction.h"

#include "sidecar/core/eviction/least_used.h"
#include "sidecar/core/eviction/never_evict.h"

namespace stoker::sidecar {

std::unique_ptr<EvictionPolicy> make_eviction(EvictionKind kind) {
    switch (kind) {
        case EvictionKind::kLru:
            return std::make_unique<Lru>();
        case EvictionKind::kLfu:
            return std::make_unique<Lfu>();
        case EvictionKind::kNever:
            return std::make_unique<NeverEvict>();
        case EvictionKind::kAuto:
            break;
    }
    return nullptr;
}

}  // namespace stoker::sidecar
