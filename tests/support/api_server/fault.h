#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace stoker::test {

// What goes wrong with the next `times` requests that match. Everything left empty goes right.
struct Fault {
    std::string method;           // "" = any
    std::string target_contains;  // "watch=1", "/leases/", "" = any
    int times = 1;                // -1 = until cleared
    int skip = 0;                 // let this many pass first

    Duration delay{};          // before anything else
    int status = 0;            // answer this instead of asking the model
    std::string body;          // with it
    std::string retry_after;   // with it
    bool hang_up = false;      // close without a byte; the model does not see the request
    bool lose_answer = false;  // the model does what was asked; its answer is lost
    std::optional<std::size_t>
        cut_after;       // so many bytes of the answer (head included), then the connection ends
    bool reset = false;  // and it ends with a TCP reset
    std::optional<std::uint64_t> split_seed;  // send in pieces of random sizes
    bool half_open = false;  // a watch: after the head not one byte more, and no end
    bool no_bookmarks = false;
    std::vector<std::string> first_lines;  // a watch sends these first, with their '\n'
    std::function<void(std::vector<std::string>&)>
        rewrite;  // of each batch of a watch: drop, repeat, reorder
};

}  // namespace stoker::test
