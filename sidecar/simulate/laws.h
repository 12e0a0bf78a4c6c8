#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Workloads whose figures are known in advance, from a closed form or an independent simulation:
// they check the simulator, and with it the sidecar's samplers and policies.
// docs/reference/simulate.md gives the source of each figure.
namespace stoker::simulate {

// The expected value or bound of a figure.
struct Expected {
    enum class Bound : std::uint8_t { kWithin, kAtMost, kAtLeast };

    Bound bound = Bound::kWithin;
    double figure = 0;
    double tolerance = 0;  // of kWithin

    // False for NaN.
    [[nodiscard]] bool holds(double measured) const;
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

    [[nodiscard]] bool holds() const { return expected.holds(measured); }
};

struct Law {
    std::string_view name;
    std::string_view meaning;
    std::vector<LawRow> (*check)();
};

const std::vector<Law>& laws();

}  // namespace stoker::simulate
