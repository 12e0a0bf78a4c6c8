// simulate-world FIRST-LAST: simulates the world of each seed. Stops at the first broken promise (a
// check of docs/design/simulation.md) and prints that seed's log. `--log` prints the log in any
// case; `--keep-going` simulates the remaining seeds, too; `--nodes N`, `--pods N` and `--jobs N`
// override the numbers drawn from the seed; `--timeline FILE.html` writes the last seed's timeline
// there, and as text to stdout.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/world/seed_runs.h"
#include "tests/world/world.h"

namespace stoker::world {
namespace {

struct Options {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    bool with_log = false;
    bool keeps_going = false;
    Size size;
    std::string timeline;  // a file; empty: none
};

// Sums over all seeds.
struct Sums {
    std::map<std::string, std::uint64_t> counts;
    FaultTable table{};
    double virtual_s = 0;
    double s = 0;
};

bool run_seed(std::uint64_t seed, const Options& options, Sums& sums) {
    const std::clock_t begin = std::clock();
    Outcome outcome;
    {
        World world{seed, options.size};
        const SeedRun running{seed, replay_command(seed), world.log()};
        outcome = world.run();
    }
    for (const auto& [what, count] : outcome.counts) {
        sums.counts[what] += count;
    }
    for (std::size_t fault = 0; fault < kFaultKinds; ++fault) {
        for (std::size_t situation = 0; situation < kSituations; ++situation) {
            sums.table.at(fault).at(situation) += outcome.table.at(fault).at(situation);
        }
    }
    // Processor time, because other programs run on the machine.
    const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!options.timeline.empty()) {
        fmt::print("{}", outcome.timeline.text());
        std::ofstream{options.timeline} << outcome.timeline.html(fmt::format("seed {}", seed));
    }
    sums.s += took_s;
    sums.virtual_s += std::chrono::duration<double>(outcome.passed).count();
    const bool failed = !outcome.accusation.empty();
    if (failed || options.with_log) {
        const std::size_t lines_max = options.with_log ? outcome.log.size() : kLinesMax;
        fmt::print(stderr, "{}", last_lines(outcome.log, lines_max));
    }
    fmt::print(
        "seed {}: {}; {:.0f} virtual s, {} faults, {} steps, {:.2f} s of one core\n",
        seed,
        failed ? "BROKEN: " + outcome.accusation : "good",
        std::chrono::duration<double>(outcome.passed).count(),
        outcome.faults,
        outcome.steps,
        took_s);
    std::fflush(stdout);
    if (failed) {
        fmt::print(stderr, "replay with: {}\n", replay_command(seed));
    }
    return !failed;
}

constexpr const char* kUsage =
    "usage: simulate-world FIRST[-LAST] [--log] [--keep-going] [--nodes N] [--pods N] [--jobs N] "
    "[--timeline FILE]\n";

// nullopt: the arguments do not match kUsage.
std::optional<Options> parse_options(int argc, char** argv) {
    const std::vector<std::string_view> words{argv + 1, argv + argc};
    const auto seeds = words.empty() ? std::nullopt : parse_seeds(words[0]);
    if (!seeds) {
        return std::nullopt;
    }
    Options options{seeds->first, seeds->second, false, false, {}, {}};
    const std::map<std::string_view, std::size_t*> numbers = {
        {"--nodes", &options.size.nodes},
        {"--pods", &options.size.pods},
        {"--jobs", &options.size.jobs}};
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "--log" || words[i] == "--keep-going") {
            (words[i] == "--log" ? options.with_log : options.keeps_going) = true;
            continue;
        }
        if (words[i] == "--timeline" && i + 1 < words.size()) {
            options.timeline = words[++i];
            continue;
        }
        const auto number = numbers.find(words[i]);
        const auto value = i + 1 < words.size() ? parse_number(words[i + 1]) : std::nullopt;
        if (number == numbers.end() || !value) {
            return std::nullopt;
        }
        *number->second = *value;
        ++i;
    }
    return options;
}

// How often each fault met a sidecar in each situation.
void print_table(const FaultTable& table) {
    fmt::print("\n{:<16}", "fault");
    for (std::size_t situation = 0; situation < kSituations; ++situation) {
        fmt::print("{:>12}", to_string(static_cast<Situation>(situation)));
    }
    fmt::print("\n");
    for (std::size_t fault = 0; fault < kFaultKinds; ++fault) {
        fmt::print("{:<16}", to_string(static_cast<Fault>(fault)));
        for (const std::uint64_t count : table.at(fault)) {
            fmt::print("{:>12}", count);
        }
        fmt::print("\n");
    }
}

int run(int argc, char** argv) {
    const auto options = parse_options(argc, argv);
    if (!options) {
        fmt::print(stderr, "{}", kUsage);
        return EXIT_FAILURE;
    }
    catch_crashes();
    keep_freed_memory();
    Sums sums;
    std::vector<std::uint64_t> broken;
    for (std::uint64_t seed = options->first; seed <= options->last; ++seed) {
        if (!run_seed(seed, *options, sums)) {
            broken.push_back(seed);
        }
        if (!broken.empty() && !options->keeps_going) {
            return EXIT_FAILURE;
        }
    }
    for (const auto& [what, count] : sums.counts) {
        fmt::print("{:>9}  {}\n", count, what);
    }
    print_table(sums.table);
    fmt::print(
        "\n{:.0f} virtual s in {:.1f} s of one core: {:.0f} virtual s a second\n",
        sums.virtual_s,
        sums.s,
        sums.virtual_s / sums.s);
    fmt::print("{} seeds broke a promise: {}\n", broken.size(), fmt::join(broken, " "));
    return broken.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace stoker::world

int main(int argc, char** argv) {
    return stoker::world::run(argc, argv);
}
