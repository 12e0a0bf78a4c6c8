#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace stoker::cli {

// Where the program writes; tests catch it.
struct Console {
    std::function<void(const std::string& text)> print;  // standard output
    std::function<void(const std::string& text)> warn;   // standard error
    bool terminal = false;                               // standard output is one
    // Waits; false: it is to end.
    std::function<bool(Duration pause)> wait;
};

// The whole program: reads the words after `kubectl stoker`, asks the cluster, prints. The exit
// status: 0 answered, 1 not (as with kubectl, whatever the reason; standard error says which).
int run(const std::vector<std::string_view>& arguments, const Console& console, const Clock& clock);

}  // namespace stoker::cli
