#pragma once

#include <optional>
#include <string>

#include "common/base/result.h"
#include "proto/local/protocol.h"
#include "sidecar/config/contract_terms.h"

// Changes that a sidecar makes to its clients' kBegin frames.
namespace stoker::sidecar {

// Limits a Begin to the job's terms: the client's parameters, and the job's for those it omits.
// kInvalidArgument: it requests more.
Status limit_begin(local::Begin& begin, const std::optional<ContractTerms>& allowed);

// Puts `job_uid` (empty: unknown) before the job's name: a pod's clients belong to its own job,
// whatever name they send.
void stamp_job(local::Begin& begin, const std::string& job_uid);

}  // namespace stoker::sidecar
