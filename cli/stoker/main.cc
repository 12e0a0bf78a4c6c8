// stoker: command-line tool. Each subcommand is a function of its arguments.
#include <cstdio>

#include <fmt/core.h>

#include "cli/stoker/command.h"

namespace {

constexpr const char* kUsage =
    "usage: stoker COMMAND [FLAG]...\n"
    "  advise     what a cache would be worth to a program, from a trace of its reads\n"
    "  simulate   what a cache on one node would be worth for these jobs\n"
    "  laws       compare the simulator with figures that are known in advance\n"
    "  pack       put many small samples into large chunks, and check them\n"
    "stoker COMMAND --help says more; stoker --version names the version.\n";

}  // namespace

int main(int argc, char** argv) {
    stoker::cli::Arguments arguments(argv + 1, argv + argc);
    if (arguments.empty()) {
        fmt::print(stderr, "{}", kUsage);
        return 2;
    }
    const std::string_view command = arguments.front();
    arguments.erase(arguments.begin());
    if (command == "advise") {
        return stoker::cli::advise_command(arguments);
    }
    if (command == "simulate") {
        return stoker::cli::simulate_command(arguments);
    }
    if (command == "laws") {
        return stoker::cli::laws_command(arguments);
    }
    if (command == "pack") {
        return stoker::cli::pack_command(arguments);
    }
    if (command == "--help" || command == "--version") {
        fmt::print("{}", command == "--help" ? kUsage : "stoker " STOKER_VERSION "\n");
        return 0;
    }
    fmt::print(stderr, "stoker: no command '{}'\n{}", command, kUsage);
    return 2;
}
