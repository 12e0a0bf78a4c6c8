// simulate-control FIRST-LAST: runs the operator's world of each seed; a broken promise ends it with
// the seed's log. `simulate-control SEED --log` writes the log in any case. `make simulate-control`
// builds and runs it.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

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
    catch_crashes();
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
