#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/prng.h"

namespace stoker::test {

// Damages bytes like disks, crashes and attackers do: flipped bits, overwritten or repeated ranges, a
// truncation, a range of zeroes, garbage at the end. Makes one to three such changes.
inline void mutate(std::vector<std::byte>& bytes, Prng& luck) {
    for (std::uint64_t left = 1 + luck.below(3); left > 0 && !bytes.empty(); --left) {
        const std::uint64_t at = luck.below(bytes.size());
        const std::uint64_t length =
            1 + luck.below(std::min<std::uint64_t>(bytes.size() - at, 300));
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = begin + static_cast<std::ptrdiff_t>(length);
        switch (luck.below(6)) {
            case 0:
                bytes[at] ^= static_cast<std::byte>(1U << luck.below(8));
                break;
            case 1:
                std::generate(begin, end, [&] { return static_cast<std::byte>(luck()); });
                break;
            case 2:
                std::fill(begin, end, std::byte{0});
                break;
            case 3: {
                const std::vector<std::byte> piece{begin, end};
                const std::uint64_t to = luck.below(bytes.size() - length + 1) / 64 * 64;
                std::ranges::copy(piece, bytes.begin() + static_cast<std::ptrdiff_t>(to));
                break;
            }
            case 4:
                bytes.resize(at);
                break;
            default:
                for (std::uint64_t i = 0; i < length; ++i) {
                    bytes.push_back(static_cast<std::byte>(luck()));
                }
        }
    }
}

}  // namespace stoker::test
