#pragma once

#include <string>

#include "operator/api/agent_report.h"
#include "operator/core/spec/resolve.h"
#include "operator/core/view/cluster_view.h"

// What a job may say of a Dataset of another namespace, whose guest it is (docs/adr/0012). It reads
// the directory and never leads it. Pure.
namespace stoker::control {

bool is_guest(const JobUse& use, const ResolvedDataset& dataset);

// Takes out what only the sidecars of a Dataset's own namespace know: who leads, what is on the
// node, what is granted and how unevenly it is read. What the guest has listed, read and waited for
// stays: it is about the guest's own job.
void drop_directory_claims(const JobUse& use, AgentReport& report);

// Also takes out what the guest says of the origin: state, size and revision of the list, and
// errors. What stays are counts of its own reads.
void drop_listing_claims(const JobUse& use, AgentReport& report);

// How sidecars of the Dataset's namespace call the job, in weights and sketches: its uid; a guest's
// is "<namespace>/<uid>", so that nobody can speak for a job of another namespace.
std::string job_key_at(const JobUse& use, const ResolvedDataset& dataset);

}  // namespace stoker::control
