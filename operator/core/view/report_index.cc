#include "operator/core/view/report_index.h"

namespace stoker::control {

ReportIndex::ReportIndex(const std::vector<SidecarReport>& reports) {
    for (const SidecarReport& report : reports) {
        by_job_[report.training_job_uid].push_back(&report);
        by_node_[report.node].push_back(&report);
    }
}

const ReportIndex::Found& ReportIndex::find(const Table& table, const std::string& key) {
    static const Found kNone;
    const auto found = table.find(key);
    return found == table.end() ? kNone : found->second;
}

}  // namespace stoker::control
