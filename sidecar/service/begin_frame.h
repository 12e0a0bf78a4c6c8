#pragma once

#include <optional>
#include <string>

#include "common/base/result.h"
#include "proto/local/protocol.h"
#include "sidecar/config/contract_terms.h"
#include "sidecar/service/frame_socket.h"

// What a sidecar changes in its clients' kBegin frames.
namespace stoker::sidecar {

// A pod's clients get what its job allows: what they ask for, and the job's parameters where they
// say nothing, is put into a kBegin frame and into `begin`. kInvalidArgument: they ask for more.
Status limit_begin(Frame& frame, local::Begin& begin, const std::optional<ContractTerms>& allowed);

// A pod's clients speak for its own job, whatever they call it: puts `job_uid` (may be empty:
// nobody knows) before the name in a kBegin frame.
void stamp_job(Frame& frame, local::Begin begin, const std::string& job_uid);

}  // namespace stoker::sidecar
