#pragma once

#include <string>

#include "cli/advise/advise_options.h"
#include "common/base/result.h"
#include "sidecar/advise/advise.h"

namespace stoker::cli {

// Reads the trace that the options name and asks for advice. Blocks; kNotFound: the file cannot be
// read; other errors: of the trace or the question.
Result<advise::Advice> advise_from_trace(const AdviseOptions& options);

// For people, one screen. Pure.
std::string advice_text(const advise::Advice& advice);

// For programs: docs/howto/advise.md names the fields. Ends with a line break. Pure.
std::string advice_json(const advise::Advice& advice);

}  // namespace stoker::cli
