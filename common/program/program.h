#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/flags/flags.h"

// Start and end of every program that runs in a pod.
namespace stoker {

inline constexpr int kExitUsage = 2;

// The variable's value, or "" if it is not set.
std::string environment(const char* name);
// The variable's value; nullopt: it is not set.
std::optional<std::string> find_environment(const char* name);

// Raises the soft limit of open descriptors to the hard one, for programs that keep many files or
// connections open.
void raise_descriptor_limit();

// Parses the arguments with `groups` and the flags --log-level, --help and --version. Returns the
// exit status if the program must end; nullopt: continue. Errors go to stderr.
std::optional<int> begin_program(
    std::string_view name,
    std::vector<FlagGroup> groups,
    const std::vector<std::string_view>& arguments);

// Prints the error to stderr and returns kExitUsage.
int refuse_to_run(std::string_view name, const Error& error);

// The exit status of a program that ended with the result `ended`; logs its error.
int exit_status(const Status& ended);

// Calls `body` with a token that SIGTERM and SIGINT stop, and returns its result. Call it before
// any other thread starts.
int run_until_stopped(const std::function<int(const std::stop_token& stop)>& body);

}  // namespace stoker
