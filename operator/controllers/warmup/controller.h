#pragma once

#include "operator/controllers/controller_parts.h"
#include "operator/controllers/status_writer.h"
#include "operator/core/status/summarize_warmup.h"

namespace stoker::control {

// Keeps a DatasetWarmup's status current, including the chosen nodes, and deletes the object at its
// ttl. The Dataset's controller makes the fillers, the grants controller grants to them.
// Thread-safe; different keys may run in parallel.
class DatasetWarmupController {
public:
    explicit DatasetWarmupController(const ControllerParts& parts)
        : parts_(parts),
          status_(parts.client, kinds::kDatasetWarmups, parts.clock) {}

    Result<Reconciled> reconcile(const ObjectKey& key);

private:
    static constexpr Duration kLookEvery = std::chrono::seconds{10};

    WarmupView gather(const DatasetWarmup& warmup);
    Status remove(const DatasetWarmup& warmup);
    void tell(const DatasetWarmup& before, const DatasetWarmup& after);

    ControllerParts parts_;
    StatusWriter status_;
};

}  // namespace stoker::control
