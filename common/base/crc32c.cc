#include "common/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace stoker {

namespace {

constexpr std::uint32_t kReversedPolynomial = 0x82F63B78U;

consteval std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kReversedPolynomial : 0U);
        }
        table[byte] = crc;
    }
    return table;
}

std::uint32_t update_by_table(std::uint32_t crc, std::span<const std::byte> data) {
    static constexpr auto kTable = make_table();
    for (const std::byte byte : data) {
        crc = (crc >> 8U) ^ kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFFU];
    }
    return crc;
}

#if defined(__x86_64__)

bool has_instruction() {
    return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) std::uint32_t update_by_instruction(
    std::uint32_t crc, std::span<const std::byte> data) {
    std::uint64_t wide = crc;
    while (data.size() >= sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, data.data(), sizeof(word));
        wide = _mm_crc32_u64(wide, word);
        data = data.subspan(sizeof(word));
    }
    auto narrow = static_cast<std::uint32_t>(wide);
    for (const std::byte byte : data) {
        narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(byte));
    }
    return narrow;
}

#elif defined(__aarch64__)

bool has_instruction() {
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

__attribute__((target("+crc"))) std::uint32_t update_by_instruction(
    std::uint32_t crc, std::span<const std::byte> data) {
    while (data.size() >= sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, data.data(), sizeof(word));
        crc = __crc32cd(crc, word);
        data = data.subspan(sizeof(word));
    }
    for (const std::byte byte : data) {
        crc = __crc32cb(crc, static_cast<std::uint8_t>(byte));
    }
    return crc;
}

#else

bool has_instruction() {
    return false;
}

std::uint32_t update_by_instruction(std::uint32_t crc, std::span<const std::byte> data) {
    return update_by_table(crc, data);
}

#endif

// The product of two polynomials over GF(2), modulo the CRC's. Bit 31: the coefficient of x^0.
std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (; a != 0; a <<= 1U) {
        product ^= (a >> 31U) != 0 ? b : 0U;
        b = (b >> 1U) ^ ((b & 1U) != 0 ? kReversedPolynomial : 0U);
    }
    return product;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed) {
    static const bool kInstruction = has_instruction();
    const std::uint32_t start = ~seed;
    return ~(kInstruction ? update_by_instruction(start, data) : update_by_table(start, data));
}

// A CRC is a remainder, so appending `b_bytes` bytes multiplies the CRC of `a` by x^8 for each byte
// (Mark Adler's crc32_combine in zlib).
std::uint32_t crc32c_combine(std::uint32_t a, std::uint32_t b, std::uint64_t b_bytes) {
    constexpr std::uint32_t kByte = 1U << (31U - 8U);  // x^8
    std::uint32_t power = kByte;
    for (; b_bytes != 0; b_bytes >>= 1U) {
        if ((b_bytes & 1U) != 0) {
            a = multiply(a, power);
        }
        power = multiply(power, power);
    }
    return a ^ b;
}

}  // namespace stoker
