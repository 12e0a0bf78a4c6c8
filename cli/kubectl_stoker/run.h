#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace stoker::cli {

// Output of the program; tests replace it.
struct Console {
    std::function<void(const std::string& text)> print;  // standard output
    std::function<void(const std::string& text)> warn;   // standard error
    bool terminal = false;                               // standard output is a terminal
    // Waits for `pause`; false: the program must stop.
    std::function<bool(Duration pause)> wait;
};

// The whole program: parses the arguments after `kubectl stoker`, asks the cluster, prints. Returns
// the exit status: 0 success, 1 any failure (as kubectl does; standard error has the reason).
int run(const std::vector<std::string_view>& arguments, const Console& console, const Clock& clock);

}  // namespace stoker::cli
