#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::cli {

// What may stand in the place of the last of `words` (those after `kubectl stoker`), one a line,
// and ":4" at the end (no file names): what kubectl asks `kubectl_complete-stoker` for. `jobs`
// lists the names of TrainingJobs, at need.
std::string complete(
    const std::vector<std::string_view>& words,
    const std::function<std::vector<std::string>()>& jobs);

}  // namespace stoker::cli
