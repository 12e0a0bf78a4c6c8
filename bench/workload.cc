#include "bench/workload.h"

#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include <fmt/core.h>

#include "common/base/clock.h"
#include "common/base/prng.h"

namespace stoker::bench {

std::vector<std::uint64_t> sample_sizes(const Workload& workload) {
    Prng prng{kSeed};
    const double mu = std::log(workload.mean_bytes) - kSigma * kSigma / 2;
    std::vector<std::uint64_t> sizes(workload.count);
    for (auto& size : sizes) {
        const double radius = std::sqrt(-2 * std::log(1 - prng.unit()));
        const double normal = radius * std::cos(2 * std::numbers::pi * prng.unit());
        size = static_cast<std::uint64_t>(std::exp(mu + kSigma * normal));
    }
    return sizes;
}

std::string sample_key(std::size_t index) {
    return fmt::format("{:04}/{:08}.bin", index / 1000, index);
}

void fill_sample(std::size_t index, std::span<std::byte> out) {
    Prng prng{kSeed + index + 1};
    std::size_t at = 0;
    for (; at + sizeof(std::uint64_t) <= out.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t word = prng();
        std::memcpy(out.data() + at, &word, sizeof(word));
    }
    for (; at < out.size(); ++at) {
        out[at] = static_cast<std::byte>(prng());
    }
}

std::string origin_key(std::size_t index) {
    return fmt::format("c{}/{}", index / kSampleCount, sample_key(index % kSampleCount));
}

std::vector<std::uint64_t> pass_order(std::uint64_t pass, std::size_t count) {
    std::vector<std::uint64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    Prng prng{kSeed * 31 + pass};
    for (std::size_t i = order.size() - 1; i > 0; --i) {
        std::swap(order[i], order[prng.below(i + 1)]);
    }
    return order;
}

// Reads at memory speed, so that touching the bytes adds little to the measured time.
std::uint64_t touch(std::span<const std::byte> bytes) {
    using Lane = std::uint64_t __attribute__((vector_size(16)));
    constexpr std::size_t kLanes = 8;
    constexpr std::size_t kAhead = 2048;  // the processor's prefetcher stops at every page boundary
    Lane sums[kLanes] = {};
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    for (; static_cast<std::size_t>(end - at) >= sizeof(sums); at += sizeof(sums)) {
        __builtin_prefetch(at + kAhead);
        __builtin_prefetch(at + kAhead + 64);
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            Lane words;
            std::memcpy(&words, at + lane * sizeof(Lane), sizeof(words));
            sums[lane] += words;
        }
    }
    std::uint64_t sum = 0;
    for (; at != end; ++at) {
        sum += static_cast<std::uint8_t>(*at);
    }
    for (const Lane& lane : sums) {
        sum += lane[0] + lane[1];
    }
    return sum;
}

double seconds() {
    return std::chrono::duration<double>(SystemClock{}.now().time_since_epoch()).count();
}

}  // namespace stoker::bench
