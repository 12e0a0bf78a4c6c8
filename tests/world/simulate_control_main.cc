// simulate-control FIRST-LAST: simulates the operator's world of each seed. Stops at the first
// broken promise (a check of docs/design/simulation.md) and prints that seed's log. `--log` prints
// the log in any case; `--keep-going` simulates the remaining seeds, too. `make simulate-control`
// builds and runs it.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/clock.h"
#include "tests/world/control_world.h"
#include "tests/world/seed_runs.h"

namespace stoker::world {
namespace {

bool run_seed(std::uint64_t seed, bool with_log, std::map<std::string, std::uint64_t>& counts) {
    const TimePoint begin = SystemClock{}.now();
    ControlOutcome outcome;
    {
        ControlWorld world{seed};
        const SeedRun running{seed, replay_control_command(seed), world.log()};
        outcome = world.run();
    }
    for (const auto& [what, count] : outcome.counts) {
        counts[what] += count;
    }
    const bool failed = !outcome.accusation.empty();
    if (failed || with_log) {
        const std::size_t lines_max = with_log ? outcome.log.size() : kLinesMax;
        fmt::print(stderr, "{}", last_lines(outcome.log, lines_max));
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
        fmt::print(stderr, "replay with: {}\n", replay_control_command(seed));
    }
    return !failed;
}

int run(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "usage: simulate-control FIRST[-LAST] [--log] [--keep-going]\n");
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
    const std::set<std::string_view> words{argv + 2, argv + argc};
    catch_crashes();
    keep_freed_memory();
    std::map<std::string, std::uint64_t> counts;
    std::vector<std::uint64_t> broken;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
        if (!run_seed(seed, words.contains("--log"), counts)) {
            broken.push_back(seed);
        }
        if (!broken.empty() && !words.contains("--keep-going")) {
            return EXIT_FAILURE;
        }
    }
    for (const auto& [what, count] : counts) {
        fmt::print("{:>9}  {}\n", count, what);
    }
    fmt::print("{} seeds broke a promise: {}\n", broken.size(), fmt::join(broken, " "));
    return broken.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace stoker::world

int main(int argc, char** argv) {
    return stoker::world::run(argc, argv);
}
