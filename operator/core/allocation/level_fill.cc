#include "operator/core/allocation/level_fill.h"

#include <algorithm>
#include <numeric>

namespace stoker::control {

std::vector<Bytes> level_fill(const std::vector<Bytes>& needs, Bytes budget) {
    std::vector<std::size_t> smallest_first(needs.size());
    std::iota(smallest_first.begin(), smallest_first.end(), std::size_t{0});
    std::stable_sort(
        smallest_first.begin(), smallest_first.end(), [&](std::size_t a, std::size_t b) {
            return needs[a] < needs[b];
        });
    std::vector<Bytes> amounts(needs.size());
    std::uint64_t left = budget.count();
    std::uint64_t takers = needs.size();
    for (const std::size_t taker : smallest_first) {
        amounts[taker] = std::min(needs[taker], Bytes{left / takers});
        left -= amounts[taker].count();
        --takers;
    }
    return amounts;
}

}  // namespace stoker::control
