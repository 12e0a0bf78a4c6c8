#pragma once

#include <string>

#include "operator/api/sidecar_report.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/cluster_view.h"

// A guest is a job that reads a Dataset of another namespace (docs/adr/0012): it reads the node
// directory and never leads it, so not all of its report is believed. Pure.
namespace stoker::control {

bool is_guest(const JobUse& use, const ResolvedDataset& dataset);

// Takes out what only the sidecars of a Dataset's own namespace know: who leads, what is on the
// node, what is granted and how unevenly it is read. What the guest has listed, read and waited for
// stays: it is about the guest's own job.
void drop_directory_claims(const JobUse& use, SidecarReport& report);

// Also takes out what the guest says of the origin: state, size and revision of the list, and
// errors. What stays are counts of its own reads.
void drop_listing_claims(const JobUse& use, SidecarReport& report);

// How sidecars of the Dataset's namespace call the job, in weights and sketches: its uid; a guest's
// is "<namespace>/<uid>", so that nobody can speak for a job of another namespace.
std::string job_key_at(const JobUse& use, const ResolvedDataset& dataset);

}  // namespace stoker::control
