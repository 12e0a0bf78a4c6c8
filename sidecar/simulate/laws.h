#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Workloads whose figures are known in advance, from a closed form or from an independent
// simulation, so that the simulator, and with it the sidecar's samplers and policies, can be held
// to them. docs/reference/simulate.md says where each figure comes from.
namespace stoker::simulate {

// What a figure has to be.
struct Expected {
    enum class Bound : std::uint8_t { kWithin, kAtMost, kAtLeast };

    Bound bound = Bound::kWithin;
    double figure = 0;
    double tolerance = 0;  // of kWithin

    // Never true of a figure that is not a number.
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
