// simulate-world FIRST-LAST: runs the world of each seed; a broken promise ends it with the seed's
// log. `--log` writes the log in any case; `--nodes N`, `--pods N` and `--jobs N` replace what the seed
// draws; `--timeline FILE.html` writes the last seed's timeline there, and as text to stdout.
#include <charconv>
#include <csignal>
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
#include <unistd.h>

#include "tests/world/world.h"

namespace stoker::world {
namespace {

constexpr std::size_t kLinesMax = 400;  // of a failing seed's log

World* current = nullptr;
std::uint64_t current_seed = 0;

void print_log(const std::vector<std::string>& log, std::size_t lines_max) {
    for (std::size_t i = log.size() - std::min(log.size(), lines_max); i < log.size(); ++i) {
        fmt::print(stderr, "{}\n", log[i]);
    }
}

void print_replay() {
    fmt::print(stderr, "replay with: make simulate-world SEEDS={} LOG=1\n", current_seed);
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

struct Options {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    bool with_log = false;
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
    current_seed = seed;
    const std::clock_t begin = std::clock();
    Outcome outcome;
    {
        World world{seed, options.size};
        current = &world;
        outcome = world.run();
        current = nullptr;
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
        print_log(outcome.log, options.with_log ? outcome.log.size() : kLinesMax);
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

constexpr const char* kUsage =
    "usage: simulate-world FIRST[-LAST] [--log] [--nodes N] [--pods N] [--jobs N] [--timeline "
    "FILE]\n";

// nullopt: not as in kUsage.
std::optional<Options> parse_options(int argc, char** argv) {
    const std::vector<std::string_view> words{argv + 1, argv + argc};
    const auto seeds = words.empty() ? std::nullopt : parse_seeds(words[0]);
    if (!seeds) {
        return std::nullopt;
    }
    Options options{seeds->first, seeds->second, false, {}, {}};
    const std::map<std::string_view, std::size_t*> numbers = {
        {"--nodes", &options.size.nodes},
        {"--pods", &options.size.pods},
        {"--jobs", &options.size.jobs}};
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "--log") {
            options.with_log = true;
            continue;
        }
        if (words[i] == "--timeline" && i + 1 < words.size()) {
            options.timeline = words[++i];
            continue;
        }
        const auto number = numbers.find(words[i]);
        const auto value = i + 1 < words.size() ? parse_seed(words[i + 1]) : std::nullopt;
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
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) {
        std::signal(signal, on_crash);
    }
    std::signal(SIGPIPE, SIG_IGN);
    Sums sums;
    for (std::uint64_t seed = options->first; seed <= options->last; ++seed) {
        if (!run_seed(seed, *options, sums)) {
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
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace stoker::world

int main(int argc, char** argv) {
    return stoker::world::run(argc, argv);
}
