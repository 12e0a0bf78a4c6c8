#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Workloads whose figures are known in advance, from a closed form or from an independent
// simulation, so that the simulator, and with it the sidecar's samplers and policies, can be held
// to them. docs/reference/simulate.md says where each figure comes from.
namespace stoker::simulate {

enum class Bound : std::uint8_t { kWithin, kAtMost, kAtLeast };

struct LawRow {
    std::string law;
    std::string what;
    std::string parameters;
    double expected = 0;
    double measured = 0;
    double tolerance = 0;  // of kWithin
    Bound bound = Bound::kWithin;

    // Never true of a figure that is not a number.
    [[nodiscard]] bool holds() const;
};

struct Law {
    std::string_view name;
    std::string_view meaning;
    std::vector<LawRow> (*check)();
};

const std::vector<Law>& laws();

}  // namespace stoker::simulate
