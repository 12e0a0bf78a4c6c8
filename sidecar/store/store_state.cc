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

// Reads exactly what encode_state() writes. After the first difference ok() is false and stays so.
class Cursor {
public:
    explicit Cursor(std::string_view text)
        : text_(text) {}

    Cursor& expect(std::string_view literal) {
        ok_ = ok_ && text_.starts_with(literal);
        if (ok_) {
            text_.remove_prefix(literal.size());
        }
        return *this;
    }

    bool take(std::string_view literal) {
        const bool there = ok_ && text_.starts_with(literal);
        if (there) {
            text_.remove_prefix(literal.size());
        }
        return there;
    }

    template <class Number>
    Number number() {
        Number value{};
        const auto [stop, error] =
            std::from_chars(text_.data(), text_.data() + text_.size(), value);
        ok_ = ok_ && error == std::errc{};
        if (ok_) {
            text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
        }
        return value;
    }

    std::string until(char stop) {
        const auto end = text_.find(stop);
        ok_ = ok_ && end != std::string_view::npos;
        if (!ok_) {
            return {};
        }
        std::string out{text_.substr(0, end)};
        text_.remove_prefix(end);
        return out;
    }

    [[nodiscard]] bool ok() const { return ok_; }

private:
    std::string_view text_;
    bool ok_ = true;
};

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
    Cursor in{text};
    in.expect(fmt::format(R"({{"schema":{},"boot_id":")", kSchema));
    state.boot_id = in.until('"');
    in.expect(R"(","clean":)");
    state.clean = in.take("true");
    if (!state.clean) {
        in.expect("false");
    }
    in.expect(R"(,"synced":[)");
    while (in.ok() && !in.take("]")) {
        state.synced.push_back(in.number<std::uint32_t>());
        in.take(",");
    }
    // Writing it again checks everything else: spelling, order, the checksum, and that nothing
    // follows.
    if (!in.ok() || !is_plain_text(state.boot_id) || encode_state(state) != text) {
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

Status save_state(
    Device& device, const std::string& path, const StoreState& state, Durability durability) {
    const std::string text = encode_state(state);
    return replace_file(device, path, std::as_bytes(std::span{text}), durability);
}

}  // namespace stoker::sidecar
