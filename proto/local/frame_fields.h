#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/base/wire.h"

// Codec of a frame's fields. fields(io, frame) in protocol.cc names each field once, in wire order;
// FieldWriter and FieldReader are its two directions, with the same members.
namespace stoker::local {

inline constexpr std::size_t kTextBytesMax = 4096;

// Type of a frame member: const for writing, mutable for reading.
template <class Frame, class Type>
concept Either = std::same_as<std::remove_const_t<Frame>, Type>;

class FieldWriter {
public:
    explicit FieldWriter(WireWriter& out)
        : out_(out) {}

    template <std::integral... T>
    void numbers(T... values) {
        (out_.put(values), ...);
    }

    void number(double value) { out_.put(std::bit_cast<std::uint64_t>(value)); }

    // A reserved field with the value 0.
    template <std::integral T>
    void zero() {
        out_.put(T{0});
    }

    template <std::integral T>
    void flag(bool value) {
        out_.put(static_cast<T>(value ? 1 : 0));
    }

    // A field with a constant value.
    void constant(std::uint32_t value) { out_.put(value); }

    // [bytes u16][utf-8]; longer texts are cut.
    void text(std::string_view text) {
        const std::string_view cut = text.substr(0, kTextBytesMax);
        out_.put(static_cast<std::uint16_t>(cut.size())).put_text(cut);
    }

    // The number of entries that follow, at most `most`. Returns it.
    std::uint32_t count(std::size_t count, std::uint32_t most = ~0U) {
        static_cast<void>(most);  // only the reader checks it
        out_.put(static_cast<std::uint32_t>(count));
        return static_cast<std::uint32_t>(count);
    }

    // The entries of an array without their count.
    template <class Entries>
    void array(const Entries& entries, std::uint32_t /*count*/) {
        out_.put_bytes(std::as_bytes(std::span{entries}));
    }

    // Resizes an array whose entries are written field by field.
    template <class Entries>
    void resize(const Entries& /*entries*/, std::uint32_t /*count*/) {}

    // If `ends`, the frame may end here: the reader treats the remaining fields as optional.
    static bool ends_early(bool /*ends*/) { return false; }

private:
    WireWriter& out_;
};

// Reads frames that FieldWriter wrote. A cut or invalid frame makes the reader not ok.
class FieldReader {
public:
    explicit FieldReader(WireReader& in)
        : in_(in) {}

    template <std::integral... T>
    void numbers(T&... values) {
        ((values = in_.get<T>()), ...);
    }

    void number(double& value) { value = std::bit_cast<double>(in_.get<std::uint64_t>()); }

    template <std::integral T>
    void zero() {
        in_.get<T>();
    }

    template <std::integral T>
    void flag(bool& value) {
        value = (in_.get<T>() & 1U) != 0;
    }

    void constant(std::uint32_t value) { constants_ok_ &= in_.get<std::uint32_t>() == value; }

    void text(std::string& text) { text = in_.get_text(in_.get<std::uint16_t>()); }

    std::uint32_t count(std::size_t /*count*/, std::uint32_t most = ~0U) {
        const auto count = in_.get<std::uint32_t>();
        if (count > most) {
            in_.get_bytes(in_.left() + 1);  // fails as a cut frame does
            return 0;
        }
        return count;
    }

    // Reads the entries. If the frame has fewer: none, and the reader is no longer ok.
    template <class Entries>
    void array(Entries& entries, std::uint32_t count) {
        using Entry = typename Entries::value_type;
        const auto raw = in_.get_bytes(std::size_t{count} * sizeof(Entry));
        if constexpr (requires { entries.resize(count); }) {
            entries.resize(raw.size() / sizeof(Entry));
        }
        if (!raw.empty()) {
            std::memcpy(entries.data(), raw.data(), raw.size());
        }
    }

    template <class Entries>
    void resize(Entries& entries, std::uint32_t count) {
        entries.resize(count);
    }

    bool ends_early(bool ends) {
        if (ends) {
            in_.get_bytes(in_.left());
        }
        return ends;
    }

    [[nodiscard]] bool constants_ok() const { return constants_ok_; }

private:
    WireReader& in_;
    bool constants_ok_ = true;
};

}  // namespace stoker::local
