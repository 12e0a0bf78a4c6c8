#pragma once

#include "operator/controllers/controller_parts.h"
#include "operator/controllers/status_writer.h"

namespace stoker::control {

// Keeps a CacheQuota's status current. Thread-safe; different keys may run in parallel.
class CacheQuotaController {
public:
    explicit CacheQuotaController(const ControllerParts& parts)
        : parts_(parts),
          status_(parts.client, kinds::kCacheQuotas, parts.clock) {}

    Result<Reconciled> reconcile(const ObjectKey& key);

private:
    ControllerParts parts_;
    StatusWriter status_;
};

}  // namespace stoker::control
