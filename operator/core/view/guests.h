#pragma once

#include <string>

#include "operator/api/sidecar_report.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/cluster_view.h"

// A guest is a job that reads a Dataset of another namespace (docs/adr/0012): it reads the node
// directory and never leads it, so some claims of its reports are not trusted. Pure.
namespace stoker::control {

bool is_guest(const TrainingJob& job, const ResolvedDataset& dataset);

// Removes claims that only sidecars of the Dataset's own namespace can make: leadership, bytes on
// the node, the grant, RankSketches and the peer address. Keeps the guest's own counts of listed,
// read and awaited data.
void drop_directory_claims(const JobUse& use, SidecarReport& report);

// Also removes the guest's claims about the origin: state, size and revision of the list, and
// errors. Only counts of its own reads remain.
void drop_listing_claims(const JobUse& use, SidecarReport& report);

// The job's key in weights and sketches of the Dataset's sidecars: its uid; for a guest
// "<namespace>/<uid>", so that it cannot claim to be a job of another namespace.
std::string job_key_at(const JobUse& use, const ResolvedDataset& dataset);

}  // namespace stoker::control
