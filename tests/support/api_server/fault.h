#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace stoker::test {

// A fault for the next `times` matching requests. Fields left empty have no effect.
struct Fault {
    std::string method;           // empty: any
    std::string target_contains;  // "watch=1", "/leases/"; empty: any
    int times = 1;                // -1 = until cleared
    int skip = 0;                 // matching requests to serve properly first

    Duration delay{};          // wait this long before anything else
    int status = 0;            // answer with this status without calling the model
    std::string body;          // body of the answer with `status`
    std::string retry_after;   // header of the answer with `status`
    bool hang_up = false;      // close without an answer; the model does not see the request
    bool lose_answer = false;  // the model executes the request, but its answer is lost
    std::optional<std::size_t>
        cut_after;       // bytes of the answer to send, head included, before closing
    bool reset = false;  // close it with a TCP reset
    std::optional<std::uint64_t> split_seed;  // send the answer in pieces of random sizes
    bool half_open = false;  // a watch sends no byte after the head and does not end
    bool no_bookmarks = false;
    std::vector<std::string> first_lines;  // a watch sends these first, with their '\n'
    std::function<void(std::vector<std::string>&)>
        rewrite;  // changes each batch of a watch: drop, repeat, reorder
};

}  // namespace stoker::test
