#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stoker::control {

// Joins at most `most` names and counts the rest: "n1, n2 and 3 more".
inline std::string name_some(std::vector<std::string> names, std::size_t most) {
    const std::size_t more = names.size() - std::min(names.size(), most);
    names.resize(names.size() - more);
    return fmt::format("{}", fmt::join(names, ", ")) +
           (more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace stoker::control
