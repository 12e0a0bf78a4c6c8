#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "common/flags/flags.h"

// The beginning and the end that all programs in pods have in common.
namespace stoker {

inline constexpr int kExitUsage = 2;

// "" where it is not set.
std::string environment(const char* name);

// Takes the arguments by `groups` and by --log-level, --help and --version. Returns what to exit
// with, if that is all; nullopt: go on. What is wrong goes to stderr.
std::optional<int> begin_program(
    std::string_view name,
    std::vector<FlagGroup> groups,
    const std::vector<std::string_view>& arguments);

// Says on stderr what the program cannot run with, and returns kExitUsage.
int refuse_to_run(std::string_view name, const Error& error);

// Calls `body` with a token that SIGTERM and SIGINT stop, and returns what it returns. Before any
// other thread starts.
int run_until_stopped(const std::function<int(const std::stop_token& stop)>& body);

}  // namespace stoker
