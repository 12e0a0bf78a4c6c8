#pragma once

#include <string>

namespace stoker::control {

// Asks the URL once, prints the answer, and returns the exit code: 0 if its status was 200. Blocks
// for at most ten seconds.
int probe(const std::string& url);

}  // namespace stoker::control
