#pragma once

#include "operator/controllers/controller_parts.h"
#include "operator/controllers/status_writer.h"

namespace stoker::control {

// Keeps a CachePool's status current. Thread-safe; different keys may run in parallel.
class CachePoolController {
public:
    explicit CachePoolController(const ControllerParts& parts)
        : parts_(parts),
          status_(parts.client, kinds::kCachePools, parts.clock) {}

    Result<Reconciled> reconcile(const ObjectKey& key);

private:
    ControllerParts parts_;
    StatusWriter status_;
};

}  // namespace stoker::control
