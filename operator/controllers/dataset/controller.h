#pragma once

#include "operator/controllers/controller_parts.h"
#include "operator/controllers/dataset/filler_keeper.h"
#include "operator/controllers/dataset/packing_keeper.h"
#include "operator/controllers/status_writer.h"
#include "operator/core/status/summarize_dataset.h"

namespace stoker::control {

// Keeps a Dataset's status current from the last reports of its users' sidecars. Creates its
// fillers where jobs of other namespaces read it, and its packing Job. Emits an Event if the API
// server refuses one of these Jobs, and when the packing ends. Thread-safe; different keys may run
// in parallel.
class DatasetController {
public:
    explicit DatasetController(const ControllerParts& parts)
        : parts_(parts),
          status_(parts.client, kinds::kDatasets, parts.clock),
          fillers_(parts),
          packing_(parts) {}

    Result<Reconciled> reconcile(const ObjectKey& key);

private:
    DatasetView gather(const Dataset& dataset, const std::vector<JobUse>& users);
    void add_user(const JobUse& use, DatasetView& view);
    // Adds which nodes in its placements, holdings and reports exist, and which were swept.
    void add_places(DatasetView& view);
    void tell(const Dataset& before, const Dataset& after);
    void tell_of_packing(const Dataset& before, const Dataset& after);

    ControllerParts parts_;
    StatusWriter status_;
    FillerKeeper fillers_;
    PackingKeeper packing_;
};

}  // namespace stoker::control
