#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cli/stoker/command.h"
#include "common/base/result.h"
#include "sidecar/simulate/laws.h"

namespace stoker::cli {

namespace {

constexpr std::string_view kUsage =
    "usage: stoker laws [--list] [LAW]...\n"
    "       stoker laws --random K [--seed S]\n"
    "Simulates workloads whose figures are known in advance and compares: one row for every\n"
    "law and parameter. Without a name: all. --random: K workloads at random parameters against\n"
    "their closed forms, with the seeds S to S+K-1; `--seed N --random 1` repeats a row. S is 1 "
    "by\n"
    "default.\n"
    "Exits 1 if a row is broken, or impossible: better than its floor, so the measurement is "
    "wrong.\n";

constexpr std::uint64_t kRowsMax = 1'000'000;

struct Options {
    std::vector<const simulate::Law*> laws;
    std::uint64_t seed = 1;
    std::uint64_t random = 0;
    bool list = false;
    bool help = false;
};

std::string relation(const simulate::Expected& expected) {
    switch (expected.bound) {
        case simulate::Expected::Bound::kAtMost:
            return fmt::format("<= {:.4g}", expected.figure);
        case simulate::Expected::Bound::kAtLeast:
            return fmt::format(">= {:.4g}", expected.figure);
        case simulate::Expected::Bound::kWithin:
            break;
    }
    return fmt::format("{:.4g} +- {:.3g}", expected.figure, expected.tolerance);
}

// The verdict in words; for "impossible" also the bound that the figure violates: "impossible:
// below its floor 0.533".
std::string verdict(const simulate::LawRow& row) {
    const std::string word{to_string(row.verdict())};
    if (row.verdict() != simulate::Verdict::kImpossible) {
        return word;
    }
    const bool is_low = row.measured < row.expected.possible_min;
    return fmt::format(
        "{}: {} {:.4g}",
        word,
        is_low ? "below its floor" : "above its ceiling",
        is_low ? row.expected.possible_min : row.expected.possible_max);
}

// Prints rows and counts their verdicts.
class Table {
public:
    Table() {
        fmt::print(
            "{:4} {:44} {:22} {:>20} {:>10}\n",
            "law",
            "what",
            "parameters",
            "expected",
            "measured");
    }

    void add(std::string_view law, const simulate::LawRow& row) {
        fmt::print(
            "{:4} {:44} {:22} {:>20} {:>10.4g}  {}\n",
            law,
            row.what,
            row.parameters,
            relation(row.expected),
            row.measured,
            verdict(row));
        std::fflush(stdout);
        ++rows_;
        broken_ += row.verdict() == simulate::Verdict::kBroken ? 1 : 0;
        impossible_ += row.verdict() == simulate::Verdict::kImpossible ? 1 : 0;
    }

    // Prints the totals. Returns the exit status.
    [[nodiscard]] int finish() const {
        fmt::print("{} rows, {} broken, {} impossible\n", rows_, broken_, impossible_);
        return broken_ + impossible_ == 0 && rows_ > 0 ? 0 : 1;
    }

private:
    std::size_t rows_ = 0;
    std::size_t broken_ = 0;
    std::size_t impossible_ = 0;
};

const simulate::Law* find(std::string_view name) {
    const auto found = std::ranges::find(simulate::laws(), name, &simulate::Law::name);
    return found == simulate::laws().end() ? nullptr : &*found;
}

int list() {
    for (const simulate::Law& law : simulate::laws()) {
        fmt::print("{:4} {}\n", law.name, law.meaning);
    }
    return 0;
}

int check(const Options& options) {
    Table table;
    for (const simulate::Law* law : options.laws) {
        for (const simulate::LawRow& row : law->check()) {
            table.add(law->name, row);
        }
    }
    for (std::uint64_t i = 0; i < options.random; ++i) {
        table.add("rand", simulate::random_law(options.seed + i));
    }
    return table.finish();
}

Result<std::uint64_t> whole_number(std::string_view flag, std::string_view text) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} needs a whole number, not '{}'", flag, text));
    }
    return number;
}

// The argument after a flag, as a number.
Result<std::uint64_t> number_after(const Arguments& arguments, std::size_t& i) {
    const std::string_view flag = arguments[i];
    ++i;
    return whole_number(flag, i < arguments.size() ? arguments[i] : "");
}

Result<Options> parse(const Arguments& arguments) {
    Options options;
    bool has_seed = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string_view word = arguments[i];
        if (word == "--list" || word == "--help") {
            (word == "--list" ? options.list : options.help) = true;
        } else if (word == "--seed") {
            STOKER_TRY(options.seed, number_after(arguments, i));
            has_seed = true;
        } else if (word == "--random") {
            STOKER_TRY(options.random, number_after(arguments, i));
        } else if (const simulate::Law* law = find(word)) {
            options.laws.push_back(law);
        } else {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("no law '{}'; stoker laws --list names them", word));
        }
    }
    if (has_seed && options.random == 0) {
        return fail(
            ErrorCode::kInvalidArgument,
            "--seed needs --random K: the laws in the list take no seed");
    }
    if (options.random > kRowsMax) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("--random is at most {}", kRowsMax));
    }
    if (options.laws.empty() && options.random == 0) {
        for (const simulate::Law& law : simulate::laws()) {
            options.laws.push_back(&law);
        }
    }
    return options;
}

}  // namespace

int laws_command(const Arguments& arguments) {
    const auto options = parse(arguments);
    if (!options) {
        fmt::print(stderr, "stoker laws: {}\n", options.error().message);
        return 2;
    }
    if (options->help) {
        fmt::print("{}", kUsage);
        return 0;
    }
    return options->list ? list() : check(*options);
}

}  // namespace stoker::cli
