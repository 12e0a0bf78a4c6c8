#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Little-endian numbers in byte buffers, as in all our files and socket frames. Supported machines
// are little-endian, so reading and writing is a bounds-checked memcpy.
namespace stoker {

template <class T>
concept WireNumber = std::is_arithmetic_v<T>;

static_assert(std::endian::native == std::endian::little, "files and frames are little-endian");

// Appends to a growing buffer. Not thread-safe.
class WireWriter {
public:
    template <WireNumber T>
    WireWriter& put(T value) {
        const auto* raw = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), raw, raw + sizeof(T));
        return *this;
    }

    WireWriter& put_bytes(std::span<const std::byte> data) {
        bytes_.insert(bytes_.end(), data.begin(), data.end());
        return *this;
    }

    WireWriter& put_text(std::string_view text) {
        return put_bytes(std::as_bytes(std::span{text}));
    }

    // Packs the first `count` bits, eight per byte, lowest bit first.
    WireWriter& put_bits(const std::vector<bool>& bits, std::size_t count) {
        for (std::size_t first = 0; first < count; first += 8) {
            unsigned byte = 0;
            for (std::size_t i = first; i < count && i < first + 8; ++i) {
                byte |= static_cast<unsigned>(bits[i]) << (i - first);
            }
            bytes_.push_back(static_cast<std::byte>(byte));
        }
        return *this;
    }

    WireWriter& pad_to(std::size_t size) {
        bytes_.resize(size > bytes_.size() ? size : bytes_.size());
        return *this;
    }

    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

    [[nodiscard]] std::span<const std::byte> view() const { return bytes_; }

    [[nodiscard]] std::string text() const {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }

    [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

private:
    std::vector<std::byte> bytes_;
};

// Reads from a buffer that it does not own. After the first read past the end ok() is false and
// every further read returns zero or nothing, so a parser may check once at the end.
class WireReader {
public:
    explicit WireReader(std::span<const std::byte> data)
        : data_(data) {}

    template <WireNumber T>
    T get() {
        T value{};
        if (const auto raw = get_bytes(sizeof(T)); !raw.empty()) {
            std::memcpy(&value, raw.data(), sizeof(T));
        }
        return value;
    }

    std::span<const std::byte> get_bytes(std::size_t count) {
        if (!ok_ || count > data_.size()) {
            ok_ = false;
            return {};
        }
        const auto head = data_.first(count);
        data_ = data_.subspan(count);
        return head;
    }

    std::string_view get_text(std::size_t count) {
        const auto raw = get_bytes(count);
        return {reinterpret_cast<const char*>(raw.data()), raw.size()};
    }

    // Reads bits that were written by put_bits().
    std::vector<bool> get_bits(std::size_t count) {
        const auto raw = get_bytes((count + 7) / 8);
        std::vector<bool> bits(raw.empty() ? 0 : count);
        for (std::size_t i = 0; i < bits.size(); ++i) {
            bits[i] = (raw[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
        }
        return bits;
    }

    [[nodiscard]] bool ok() const { return ok_; }

    [[nodiscard]] std::size_t left() const { return data_.size(); }

private:
    std::span<const std::byte> data_;
    bool ok_ = true;
};

}  // namespace stoker
