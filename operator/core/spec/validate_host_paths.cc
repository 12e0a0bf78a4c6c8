#include "operator/core/spec/validate_host_paths.h"

#include <fmt/format.h>

#include "operator/core/spec/field_checks.h"

namespace stoker::control {

namespace {

void check_path(
    const std::string& path,
    const std::string& where,
    const std::vector<std::string>& pool_paths,
    Complaints& complaints) {
    for (const std::string& pool : pool_paths) {
        complaints.unless(
            pool.empty() || !overlap(path, pool),
            where,
            fmt::format(
                "hostPath {} lies in or above {}, the directory of a CachePool; choose another "
                "directory",
                path,
                pool));
    }
}

}  // namespace

std::vector<FieldError> validate_host_paths(
    const PodOverlay& pod,
    const std::vector<ResolvedDataset>& datasets,
    const std::vector<std::string>& pool_paths) {
    Complaints complaints;
    for (const auto& [volume, path] : pod.host_paths) {
        const std::string where =
            fmt::format("spec.podTemplate.spec.volumes[{}].hostPath.path", volume);
        check_path(path, where, pool_paths, complaints);
    }
    for (const ResolvedDataset& dataset : datasets) {
        if (dataset.source.volume && dataset.source.volume->host_path) {
            const std::string where = fmt::format("spec.datasets[{}]", dataset.name);
            check_path(*dataset.source.volume->host_path, where, pool_paths, complaints);
        }
    }
    return complaints.take();
}

}  // namespace stoker::control
