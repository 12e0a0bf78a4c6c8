#pragma once

#include <string>

#include "cli/advise/advise_options.h"
#include "common/base/result.h"
#include "sidecar/advise/advise.h"

namespace stoker::cli {

// Reads the trace that the options name and asks for advice. Blocks; kNotFound: the file cannot be
// read; other errors: the trace or the question is invalid.
Result<advise::Advice> advise_from_trace(const AdviseOptions& options);

// Formats the advice for people: one screen. Pure.
std::string advice_text(const advise::Advice& advice);

// Formats the advice as JSON (fields: docs/howto/advise.md). Ends with a line break. Pure.
std::string advice_json(const advise::Advice& advice);

}  // namespace stoker::cli
