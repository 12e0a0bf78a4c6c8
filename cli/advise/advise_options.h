#pragma once

#include <string>

#include "common/flags/flags.h"
#include "sidecar/advise/advise.h"

namespace stoker::cli {

// Flags of `advise` with a trace, shared by `stoker` and `kubectl stoker`.
struct AdviseOptions {
    std::string trace_path;  // "-": standard input; empty: not given
    advise::Question question;
};

// The flags, which write into `options`; it must outlive them.
FlagGroup advise_flags(AdviseOptions& options);

}  // namespace stoker::cli
