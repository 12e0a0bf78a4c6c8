#include "common/program/program.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/core.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/named_thread.h"
#include "common/runtime/signals.h"

namespace stoker {

namespace {

Status set_log_level(std::string_view text) {
    log::Level level{};
    if (!log::parse_level(text, level)) {
        return fail(ErrorCode::kInvalidArgument, "must be error, warning, info or debug");
    }
    log::set_level(level);
    return {};
}

}  // namespace

std::string environment(const char* name) {
    return find_environment(name).value_or("");
}

std::optional<std::string> find_environment(const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr ? std::optional<std::string>{value} : std::nullopt;
}

void raise_descriptor_limit() {
    rlimit descriptors{};
    if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
        descriptors.rlim_cur = descriptors.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &descriptors);
    }
}

std::optional<int> begin_program(
    std::string_view name,
    std::vector<FlagGroup> groups,
    const std::vector<std::string_view>& arguments) {
    bool help = false;
    bool version = false;
    groups.push_back(
        {"Flags of every program",
         {{"log-level", "LEVEL", "error, warning, info or debug (default: info)", set_log_level},
          {"help", "", "print this", switch_into(help)},
          {"version", "", "print the version", switch_into(version)}}});
    if (const Status parsed = parse_flags(groups, arguments); !parsed) {
        return refuse_to_run(name, parsed.error());
    }
    if (help) {
        fmt::print("usage: {} [FLAG]...\n{}", name, flag_help(groups));
    } else if (version) {
        fmt::print("{} " STOKER_VERSION "\n", name);
    }
    return help || version ? std::optional{EXIT_SUCCESS} : std::nullopt;
}

int refuse_to_run(std::string_view name, const Error& error) {
    fmt::print(stderr, "{}: {}\n", name, error.message);
    return kExitUsage;
}

int exit_status(const Status& ended) {
    if (ended) {
        return EXIT_SUCCESS;
    }
    log::error(
        "cannot run", {{"code", to_string(ended.error().code)}, {"error", ended.error().message}});
    return EXIT_FAILURE;
}

int run_until_stopped(const std::function<int(const std::stop_token& stop)>& body) {
    const SystemClock clock;
    EventLoop loop{clock};
    std::stop_source stop;
    const StopSignals signals{loop, [&stop](int signal) {
                                  log::info("stopping", {{"signal", signal}});
                                  stop.request_stop();
                              }};
    const std::jthread waits =
        start_thread("signals", [&loop](const std::stop_token&) { loop.run(); });
    const int result = body(stop.get_token());
    loop.stop();
    return result;
}

}  // namespace stoker
