#pragma once

#include <string_view>
#include <vector>

namespace stoker::cli {

// A subcommand of `stoker`: prints its result to standard output and errors to standard error.
// Returns the exit status: 0 success, 1 negative result, 2 usage error.
using Arguments = std::vector<std::string_view>;

int advise_command(const Arguments& arguments);
int simulate_command(const Arguments& arguments);
int laws_command(const Arguments& arguments);
int pack_command(const Arguments& arguments);

}  // namespace stoker::cli
