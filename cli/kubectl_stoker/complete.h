#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker::cli {

// Completions of the last of `words` (those after `kubectl stoker`), one per line, then ":4" (no
// file names), as kubectl expects from `kubectl_complete-stoker`. `jobs` lists the names of
// TrainingJobs; it is called only if needed.
std::string complete(
    const std::vector<std::string_view>& words,
    const std::function<std::vector<std::string>()>& jobs);

}  // namespace stoker::cli
