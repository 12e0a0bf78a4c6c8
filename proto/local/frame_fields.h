#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/wire.h"

// How texts and id arrays are spelled inside the frames of the local protocol.
namespace stoker::local {

inline constexpr std::size_t kTextBytesMax = 4096;

// [bytes u16][utf-8]; longer ones are cut.
inline void put_text(WireWriter& out, std::string_view text) {
    const std::string_view cut = text.substr(0, kTextBytesMax);
    out.put(static_cast<std::uint16_t>(cut.size())).put_text(cut);
}

inline std::string get_text(WireReader& in) {
    const auto size = in.get<std::uint16_t>();
    return std::string{in.get_text(size)};
}

// `count` numbers without their count in front. Empty, and the reader not ok, when there are fewer.
template <class T>
std::vector<T> get_array(WireReader& in, std::uint32_t count) {
    const auto raw = in.get_bytes(std::size_t{count} * sizeof(T));
    std::vector<T> values(raw.size() / sizeof(T));
    if (!raw.empty()) {
        std::memcpy(values.data(), raw.data(), raw.size());
    }
    return values;
}

// [count u32][0 u32][ids u64]
inline void put_ids(WireWriter& out, const std::vector<std::uint64_t>& ids) {
    out.put(static_cast<std::uint32_t>(ids.size())).put(std::uint32_t{0});
    out.put_bytes(std::as_bytes(std::span{ids}));
}

inline std::vector<std::uint64_t> get_ids(WireReader& in) {
    const auto count = in.get<std::uint32_t>();
    in.get<std::uint32_t>();
    return get_array<std::uint64_t>(in, count);
}

}  // namespace stoker::local
