#pragma once

#include <string>

#include "proto/local/protocol.h"
#include "sidecar/service/frame_socket.h"
#include "sidecar/service/sampling_desk.h"

namespace stoker::sidecar {

// Makes the samplers of every contract that this sidecar knows, with their parameters from the
// trainer's side (docs/reference/sampling-contracts.md).
MakeSampler contract_samplers();

// A pod's clients speak for its own job, whatever they call it: puts `job_uid` (may be empty:
// nobody knows) before the name in a kBegin frame.
void stamp_job(Frame& frame, local::Begin begin, const std::string& job_uid);

}  // namespace stoker::sidecar
