#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace stoker::sidecar {

// One byte for a loss, as it travels between nodes: eight steps for each power of two from 2^-20 to
// 2^12. Losses below 9/8 of 2^-20, also zero and negative ones, have the code 0; losses above the
// last step have 255.
//
// Codes sort as the losses do. A code does not depend on other losses, so losses of different nodes
// are comparable. loss_of() is within 1/16 of the loss. Pure.
class LossCode {
public:
    // `loss` must be finite.
    [[nodiscard]] static std::uint8_t code_of(float loss) {
        if (!(loss >= std::ldexp(1.0F, kExponentMin))) {
            return 0;
        }
        const std::uint32_t step = (std::bit_cast<std::uint32_t>(loss) >> kCutBits) - kFirst;
        return static_cast<std::uint8_t>(step < kLast ? step : kLast);
    }

    // The loss in the middle of the code's step; 0 for code 0.
    [[nodiscard]] static float loss_of(std::uint8_t code) {
        return code == 0 ? 0.0F : std::bit_cast<float>(((code + kFirst) << kCutBits) | kHalfStep);
    }

private:
    static constexpr int kExponentMin = -20;
    static constexpr std::uint32_t kStepBits = 3;              // of the mantissa, sent
    static constexpr std::uint32_t kCutBits = 23 - kStepBits;  // of the mantissa, not sent
    static constexpr std::uint32_t kHalfStep = 1U << (kCutBits - 1);
    static constexpr std::uint32_t kFirst = (127 + kExponentMin) << kStepBits;
    static constexpr std::uint32_t kLast = 255;
};

}  // namespace stoker::sidecar
