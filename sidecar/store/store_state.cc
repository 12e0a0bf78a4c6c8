#include "sidecar/store/store_state.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/base/crc32c.h"
#include "common/base/wire.h"

namespace stoker::sidecar {

namespace {

constexpr unsigned kSchema = 1;
constexpr std::uint64_t kStateBytesMax = 16ULL << 20U;

std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
    const auto at = text.find(before);
    if (at == std::string_view::npos) {
        return {};
    }
    text.remove_prefix(at + before.size());
    return text.substr(0, text.find(after));
}

std::uint32_t checksum(std::string_view text) {
    return crc32c(std::as_bytes(std::span{text}));
}

}  // namespace

bool StoreState::is_synced(domain::SegmentSeq seq) const {
    return std::ranges::binary_search(synced, seq.value());
}

std::string encode_state(const StoreState& state) {
    std::string body = fmt::format(
        R"({{"schema":{},"boot_id":"{}","clean":{},"synced":[{}])",
        kSchema,
        state.boot_id,
        state.clean,
        fmt::join(state.synced, ","));
    return fmt::format("{},\"crc32c\":{}}}\n", body, checksum(body));
}

std::optional<StoreState> decode_state(std::string_view text) {
    StoreState state;
    state.boot_id = between(text, R"("boot_id":")", "\"");
    state.clean = between(text, R"("clean":)", ",") == "true";
    std::string_view synced = between(text, R"("synced":[)", "]");
    while (!synced.empty()) {
        std::uint32_t number = 0;
        const char* end = synced.data() + synced.size();
        const auto [stop, error] = std::from_chars(synced.data(), end, number);
        if (error != std::errc{}) {
            return std::nullopt;
        }
        state.synced.push_back(number);
        synced.remove_prefix(
            static_cast<std::size_t>(stop - synced.data()) + (stop == end ? 0 : 1));
    }
    // Encodes the state again, which checks everything else: spelling, order, the checksum, and
    // that no bytes follow.
    if (!is_plain_text(state.boot_id) || encode_state(state) != text) {
        return std::nullopt;
    }
    return state;
}

bool is_plain_text(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '-';
    });
}

Result<std::optional<StoreState>> load_state(Device& device, const std::string& path) {
    auto bytes = read_file(device, path, kStateBytesMax);
    if (!bytes.has_value()) {
        const ErrorCode code = bytes.error().code;
        if (code == ErrorCode::kNotFound || code == ErrorCode::kCorruption) {
            return std::optional<StoreState>{};
        }
        return fail(std::move(bytes).error());
    }
    return decode_state(WireReader{*bytes}.get_text(bytes->size()));
}

Status save_state(Device& device, const std::string& path, const StoreState& state) {
    const std::string text = encode_state(state);
    return replace_file(device, path, std::as_bytes(std::span{text}), Durability::kPower);
}

}  // namespace stoker::sidecar
