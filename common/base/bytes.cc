#include "common/base/bytes.h"

#include <array>

#include <fmt/core.h>

namespace stoker {

std::string to_string(Bytes bytes) {
    if (bytes.is_unlimited()) {
        return "unlimited";
    }
    constexpr std::array<const char*, 5> kUnits = {"Ki", "Mi", "Gi", "Ti", "Pi"};
    if (bytes.count() < 1024) {
        return fmt::format("{}B", bytes.count());
    }
    auto scaled = static_cast<double>(bytes.count()) / 1024.0;
    std::size_t unit = 0;
    while (scaled >= 1024.0 && unit + 1 < kUnits.size()) {
        scaled /= 1024.0;
        ++unit;
    }
    std::string number = fmt::format("{:.1f}", scaled);
    if (number.ends_with(".0")) {
        number.resize(number.size() - 2);
    }
    return number + kUnits.at(unit);
}

}  // namespace stoker
