#include <algorithm>
#include <cstdio>
#include <string>

#include <fmt/core.h>

#include "cli/stoker/command.h"
#include "sidecar/simulate/laws.h"

namespace stoker::cli {

namespace {

constexpr std::string_view kUsage =
    "usage: stoker laws [--list] [LAW]...\n"
    "Simulates the workloads whose figures are known in advance and compares: one row for every\n"
    "law and parameter. Exits 1 when one does not hold. Without a name: all.\n";

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

std::string line(const simulate::Law& law, const simulate::LawRow& row) {
    return fmt::format(
        "{:4} {:44} {:22} {:>20} {:>10.4g}  {}\n",
        law.name,
        row.what,
        row.parameters,
        relation(row.expected),
        row.measured,
        row.holds() ? "holds" : "BROKEN");
}

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

int check(const std::vector<const simulate::Law*>& chosen) {
    fmt::print(
        "{:4} {:44} {:22} {:>20} {:>10}\n", "law", "what", "parameters", "expected", "measured");
    std::size_t rows = 0;
    std::size_t broken = 0;
    for (const simulate::Law* law : chosen) {
        for (const simulate::LawRow& row : law->check()) {
            fmt::print("{}", line(*law, row));
            std::fflush(stdout);
            ++rows;
            broken += row.holds() ? 0 : 1;
        }
    }
    fmt::print("{} rows, {} broken\n", rows, broken);
    return broken == 0 && rows > 0 ? 0 : 1;
}

}  // namespace

int laws_command(const Arguments& arguments) {
    std::vector<const simulate::Law*> chosen;
    for (const std::string_view name : arguments) {
        if (name == "--list") {
            return list();
        }
        if (name == "--help") {
            fmt::print("{}", kUsage);
            return 0;
        }
        const simulate::Law* law = find(name);
        if (law == nullptr) {
            fmt::print(stderr, "stoker laws: no law '{}'; stoker laws --list names them\n", name);
            return 2;
        }
        chosen.push_back(law);
    }
    if (chosen.empty()) {
        for (const simulate::Law& law : simulate::laws()) {
            chosen.push_back(&law);
        }
    }
    return check(chosen);
}

}  // namespace stoker::cli
