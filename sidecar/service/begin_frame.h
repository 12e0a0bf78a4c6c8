#pragma once

#include <optional>
#include <string>

#include "common/base/result.h"
#include "proto/local/protocol.h"
#include "sidecar/config/contract_terms.h"

// A sidecar's changes to its clients' kBegin frames.
namespace stoker::sidecar {

// A pod's clients get what its job allows: what they ask for, and the job's parameters where they
// say nothing. kInvalidArgument: they ask for more.
Status limit_begin(local::Begin& begin, const std::optional<ContractTerms>& allowed);

// A pod's clients speak for its own job, whatever they call it: puts `job_uid` (may be empty:
// nobody knows) before the name.
void stamp_job(local::Begin& begin, const std::string& job_uid);

}  // namespace stoker::sidecar
