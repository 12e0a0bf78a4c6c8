#include "sidecar/core/sampling/torch_permutation.h"

#include <numeric>
#include <random>
#include <utility>

namespace stoker::sidecar {

std::vector<domain::SampleIndex> torch_permutation(std::uint32_t count, std::uint64_t seed) {
    std::vector<domain::SampleIndex> order(count);
    std::iota(order.begin(), order.end(), domain::SampleIndex{0});
    std::mt19937 words{static_cast<std::uint32_t>(seed)};  // torch takes the lower half, too
    for (std::uint32_t i = 0; i + 1 < count; ++i) {
        std::swap(order[i], order[i + words() % (count - i)]);
    }
    return order;
}

}  // namespace stoker::sidecar
