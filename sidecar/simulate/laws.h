#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

// Workloads whose figures are known in advance, from a closed form or an independent simulation:
// they check the simulator, and with it the sidecar's samplers and policies.
// docs/reference/simulate.md gives the source of each figure.
namespace stoker::simulate {

enum class Verdict : std::uint8_t {
    kHeld,
    kBroken,
    kImpossible,  // better than any cache can be: the measurement is wrong, or its workload
};

// "held", "broken" or "impossible".
std::string_view to_string(Verdict verdict);

// The expected value or bound of a figure, and the range that no cache can leave.
struct Expected {
    enum class Bound : std::uint8_t { kWithin, kAtMost, kAtLeast };

    Bound bound = Bound::kWithin;
    double figure = 0;
    double tolerance = 0;  // of kWithin
    double possible_min = -std::numeric_limits<double>::infinity();
    double possible_max = std::numeric_limits<double>::infinity();

    // Adds a lower limit: a smaller figure is impossible, for instance fewer fetches than samples
    // that cannot be resident.
    [[nodiscard]] Expected floor(double least) const;

    // Adds an upper limit: a larger figure is impossible.
    [[nodiscard]] Expected ceiling(double most) const;

    // NaN is kBroken. An impossible figure is kImpossible whether or not the bound holds.
    [[nodiscard]] Verdict judge(double measured) const;

    [[nodiscard]] bool holds(double measured) const { return judge(measured) == Verdict::kHeld; }
};

inline Expected within(double figure, double tolerance) {
    return {Expected::Bound::kWithin, figure, tolerance};
}

inline Expected at_most(double figure) {
    return {Expected::Bound::kAtMost, figure};
}

inline Expected at_least(double figure) {
    return {Expected::Bound::kAtLeast, figure};
}

struct LawRow {
    std::string what;
    std::string parameters;
    Expected expected;
    double measured = 0;

    [[nodiscard]] Verdict verdict() const { return expected.judge(measured); }

    [[nodiscard]] bool holds() const { return verdict() == Verdict::kHeld; }
};

struct Law {
    std::string_view name;
    std::string_view meaning;
    std::vector<LawRow> (*check)();
};

const std::vector<Law>& laws();

// One workload at random parameters against its closed form; `parameters` names all of them and the
// seed. Equal seeds give equal rows; consecutive seeds go through all closed forms in turn.
// docs/reference/simulate.md lists them and derives their tolerances.
LawRow random_law(std::uint64_t seed);

}  // namespace stoker::simulate
