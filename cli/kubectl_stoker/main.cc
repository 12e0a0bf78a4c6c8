// kubectl-stoker: the plugin behind `kubectl stoker ...`.
#include <cstdio>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/kubectl_stoker/run.h"
#include "common/log/log.h"

int main(int argc, char** argv) {
    // Hides library logs; errors are printed as sentences.
    stoker::log::set_level(stoker::log::Level::kError);
    const stoker::SystemClock clock;
    stoker::cli::Console console;
    console.terminal = isatty(STDOUT_FILENO) == 1;
    console.print = [](const std::string& text) {
        fmt::print("{}", text);
        std::fflush(stdout);
    };
    console.warn = [](const std::string& text) { fmt::print(stderr, "{}", text); };
    console.wait = [](stoker::Duration pause) {
        std::this_thread::sleep_for(pause);  // between two refreshes of --watch
        return std::ferror(stdout) == 0;
    };
    return stoker::cli::run({argv + 1, argv + argc}, console, clock);
}
