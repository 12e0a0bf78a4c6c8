#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/dataset.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/spec/moment.h"
#include "operator/core/sweep/plan_fillers.h"

namespace stoker::control {

struct DatasetView {
    Dataset dataset;
    std::vector<JobUse> users;                            // running jobs, and its fillers
    std::vector<SidecarReport> reports;                   // at least those of the users
    std::set<std::string> nodes;                          // that exist
    std::set<std::pair<std::string, std::string>> swept;  // pool, node: its bytes there are gone
    std::vector<FillerState> fillers{};                   // that are needed
};

// The status of a Dataset as it should be now. Bytes on a node stay as last told while nobody uses
// them there: they are still on its disk. Ready becomes Unknown when the users' sidecars are
// silent; without users it keeps its last word.
DatasetStatus summarize_dataset(const DatasetView& view, const Moment& now);

}  // namespace stoker::control
