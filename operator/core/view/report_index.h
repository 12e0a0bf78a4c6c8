#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "operator/api/sidecar_report.h"

namespace stoker::control {

// Index of reports by job and by node, so that lookups do not scan all reports. Pure.
class ReportIndex {
public:
    using Found = std::vector<const SidecarReport*>;  // in the order of the list

    // `reports` must outlive the index and not change.
    explicit ReportIndex(const std::vector<SidecarReport>& reports);
    explicit ReportIndex(std::vector<SidecarReport>&& reports) = delete;

    // Reports with this TrainingJob's uid.
    [[nodiscard]] const Found& of_job(const std::string& uid) const { return find(by_job_, uid); }

    [[nodiscard]] const Found& on_node(const std::string& node) const {
        return find(by_node_, node);
    }

private:
    using Table = std::unordered_map<std::string_view, Found>;

    static const Found& find(const Table& table, const std::string& key);

    Table by_job_;
    Table by_node_;
};

}  // namespace stoker::control
