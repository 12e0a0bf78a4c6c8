#pragma once

#include <string_view>
#include <vector>

namespace stoker::cli {

// A subcommand of `stoker`: prints its result to standard output, its complaints to standard error,
// and gives the exit status: 0 done, 1 an answer that is a failure, 2 not understood.
using Arguments = std::vector<std::string_view>;

int simulate_command(const Arguments& arguments);
int laws_command(const Arguments& arguments);

}  // namespace stoker::cli
