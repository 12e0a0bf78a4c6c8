#include "operator/core/view/guests.h"

#include <algorithm>

namespace stoker::control {

namespace {

template <class Drop>
void of_foreign(const JobUse& use, SidecarReport& report, Drop drop) {
    for (DatasetReport& told : report.datasets) {
        const bool foreign =
            std::ranges::any_of(use.datasets->datasets, [&](const ResolvedDataset& dataset) {
                return dataset.uid == told.dataset_uid && is_guest(use.job, dataset);
            });
        if (foreign) {
            drop(told);
        }
    }
}

}  // namespace

bool is_guest(const TrainingJob& job, const ResolvedDataset& dataset) {
    return dataset.ns != job.meta.ns;
}

void drop_directory_claims(const JobUse& use, SidecarReport& report) {
    of_foreign(use, report, [](DatasetReport& told) {
        told.leader = false;
        told.resident_bytes = Bytes::zero();
        told.resident_samples = 0;
        told.window_bytes = Bytes::zero();
        told.granted_bytes = Bytes::zero();
        told.admitting = true;
        told.sketches.clear();
        told.disk_limit.reset();
        told.peer_address.clear();
        told.peer_generation = 0;
        told.peer_bytes_read = Bytes::zero();
        told.peer_samples = told.peer_hedges = 0;
        told.peer_failures = told.peer_connect_failures = 0;
        told.peer_group_version = 0;
        told.window_needed_bytes = told.window_lacks_bytes = Bytes::zero();
        told.fill.reset();
    });
}

void drop_listing_claims(const JobUse& use, SidecarReport& report) {
    drop_directory_claims(use, report);
    of_foreign(use, report, [](DatasetReport& told) {
        told.manifest_state = ManifestState::kUnknown;
        told.error.clear();
        told.objects_listed = 0;
        told.revision.clear();
        told.samples = 0;
        told.total_bytes = Bytes::zero();
    });
}

std::string job_key_at(const JobUse& use, const ResolvedDataset& dataset) {
    const ObjectMeta& job = use.job->meta;
    return is_guest(use.job, dataset) ? job.ns + "/" + job.uid : job.uid;
}

}  // namespace stoker::control
