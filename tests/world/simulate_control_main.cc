// simulate-control FIRST-LAST: runs the operator's world of each seed; a broken promise ends it with the seed's
// log. `simulate-control SEED --log` writes the log in any case.
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/world/control_world.h"

namespace stoker::world {
namespace {

constexpr std::size_t kLinesMax = 400;  // of a failing seed's log

ControlWorld* current = nullptr;
std::uint64_t current_seed = 0;

void print_log(const std::vector<std::string>& log, std::size_t lines_max) {
    for (std::size_t i = log.size() - std::min(log.size(), lines_max); i < log.size(); ++i) {
        fmt::print(stderr, "{}\n", log[i]);
    }
}

void print_replay() {
    fmt::print(stderr, "replay with: simulate-control {} --log\n", current_seed);
}

// A check of the product failed: the log says in which situation.
void on_crash(int signal) {
    if (current != nullptr) {
        print_log(std::exchange(current, nullptr)->log(), kLinesMax);
        fmt::print(stderr, "seed {} crashed with signal {}\n", current_seed, signal);
        print_replay();
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

bool run_seed(std::uint64_t seed, bool with_log, std::map<std::string, std::uint64_t>& counts) {
    current_seed = seed;
    const TimePoint begin = SystemClock{}.now();
    ControlOutcome outcome;
    {
        ControlWorld world{seed};
        current = &world;
        outcome = world.run();
        current = nullptr;
    }
    for (const auto& [what, count] : outcome.counts) {
        counts[what] += count;
    }
    const bool failed = !outcome.accusation.empty();
    if (failed || with_log) {
        print_log(outcome.log, with_log ? outcome.log.size() : kLinesMax);
    }
    fmt::print(
        "seed {}: {}; {:.0f} virtual s, {} steps, {:.2f} s\n",
        seed,
        failed ? "BROKEN: " + outcome.accusation : "good",
        std::chrono::duration<double>(outcome.passed).count(),
        outcome.steps,
        std::chrono::duration<double>(SystemClock{}.now() - begin).count());
    std::fflush(stdout);
    if (failed) {
        print_replay();
    }
    return !failed;
}

std::optional<std::uint64_t> parse_seed(std::string_view text) {
    std::uint64_t seed = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seed);
    return error == std::errc{} && rest == end ? std::optional{seed} : std::nullopt;
}

// FIRST-LAST, or one seed; nullopt: neither, or LAST is less than FIRST.
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_seeds(std::string_view text) {
    const auto dash = text.find('-');
    const auto first = parse_seed(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_seed(text.substr(dash + 1));
    return first && last && *first <= *last ? std::optional{std::pair{*first, *last}}
                                            : std::nullopt;
}

int run(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "usage: simulate-control FIRST[-LAST] [--log]\n");
        return EXIT_FAILURE;
    }
    const auto seeds = parse_seeds(argv[1]);
    if (!seeds) {
        fmt::print(
            stderr,
            "seeds '{}': expected a number, or FIRST-LAST with FIRST at most LAST\n",
            argv[1]);
        return EXIT_FAILURE;
    }
    const auto [first, last] = *seeds;
    const bool with_log = argc > 2 && std::string_view{argv[2]} == "--log";
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) {
        std::signal(signal, on_crash);
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::map<std::string, std::uint64_t> counts;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        if (!run_seed(seed, with_log, counts)) {
            return EXIT_FAILURE;
        }
    }
    for (const auto& [what, count] : counts) {
        fmt::print("{:>9}  {}\n", count, what);
    }
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace stoker::world

int main(int argc, char** argv) {
    return stoker::world::run(argc, argv);
}
