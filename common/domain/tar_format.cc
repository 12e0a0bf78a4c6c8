#include "common/domain/tar_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace stoker::domain {

namespace {

using Block = std::span<const char, kTarBlockBytes>;

// A text field of a header, up to its first NUL.
std::string_view text_field(Block block, std::size_t at, std::size_t length) {
    return {block.data() + at, ::strnlen(block.data() + at, length)};
}

// A number in GNU's binary form: big-endian, marked by the first byte 0x80.
std::optional<std::uint64_t> binary_field(Block block, std::size_t at, std::size_t length) {
    std::uint64_t value = 0;
    for (std::size_t i = at; i < at + length; ++i) {
        const std::uint64_t byte = static_cast<unsigned char>(block[i]);
        if (value >> 56U != 0 || (i == at && byte != 0x80U)) {
            return std::nullopt;
        }
        value = value << 8U | (i == at ? 0 : byte);
    }
    return value;
}

// The number in a header's field: octal digits, or binary_field(). An empty field is 0. nullopt:
// not a number of 64 bits.
std::optional<std::uint64_t> number_field(Block block, std::size_t at, std::size_t length) {
    if ((static_cast<unsigned char>(block[at]) & 0x80U) != 0) {
        return binary_field(block, at, length);
    }
    std::string_view digits = text_field(block, at, length);
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    digits = digits.substr(0, digits.find(' '));
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value, 8);
    const bool is_whole = read.ec == std::errc{} && read.ptr == end;
    return is_whole || digits.empty() ? std::optional{value} : std::nullopt;
}

// Accepts sums of signed bytes, too, which old programs wrote.
bool checksum_fits(Block block) {
    constexpr std::size_t kAt = 148;
    constexpr std::size_t kLength = 8;
    std::int64_t sum = kLength * ' ';
    std::int64_t signed_sum = sum;
    for (std::size_t i = 0; i < block.size(); ++i) {
        const bool is_summed = i < kAt || i >= kAt + kLength;
        sum += is_summed ? static_cast<unsigned char>(block[i]) : 0;
        signed_sum += is_summed ? static_cast<signed char>(block[i]) : 0;
    }
    const auto stored = number_field(block, kAt, kLength);
    return stored && (std::cmp_equal(*stored, sum) || std::cmp_equal(*stored, signed_sum));
}

TarMember::Kind kind_of(char type, std::string_view name, bool is_sparse) {
    const bool is_folder = type == '\0' && name.ends_with('/');
    if (is_sparse || type == 'S') {
        return TarMember::Kind::kSparse;
    }
    if (type == '1' || type == '2') {
        return TarMember::Kind::kLink;
    }
    const bool is_file = (type == '0' || type == '\0' || type == '7') && !is_folder;
    return is_file ? TarMember::Kind::kFile : TarMember::Kind::kOther;
}

// Whether data follows the header: not for links, folders and devices, whatever their size field.
bool has_data(char type, std::string_view name) {
    return (type < '1' || type > '6') && !(type == '\0' && name.ends_with('/'));
}

bool is_extra(char type) {
    return std::string_view{"LKxXg"}.find(type) != std::string_view::npos;
}

}  // namespace

std::optional<ByteRange> TarWalk::next() const {
    if (extra_) {
        return ByteRange{at_, extra_->size_bytes};
    }
    if (has_ended_ || at_ >= bytes_) {
        return std::nullopt;
    }
    // A shorter range at the end of the file: take() refuses a file that ends inside a header.
    return ByteRange{at_, std::min<std::uint64_t>(kTarBlockBytes, bytes_ - at_)};
}

Result<std::optional<TarMember>> TarWalk::take(std::span<const std::byte> bytes) {
    const char* text = reinterpret_cast<const char*>(bytes.data());
    if (extra_) {
        STOKER_TRY_VOID(take_extra({text, bytes.size()}));
        return std::nullopt;
    }
    if (bytes.size() < kTarBlockBytes) {
        return corrupt("ends inside an entry");
    }
    return take_header(Block{text, kTarBlockBytes});
}

tl::unexpected<Error> TarWalk::corrupt(std::string_view what) const {
    return fail(ErrorCode::kCorruption, fmt::format("at byte {}: {}", at_, what));
}

Result<std::optional<TarMember>> TarWalk::take_header(Block block) {
    if (std::ranges::all_of(block, [](char byte) { return byte == 0; })) {
        has_ended_ = true;
        if (begin_) {
            return corrupt("ends inside an entry");
        }
        return std::nullopt;
    }
    auto entry = read_entry(block);
    if (!entry) {
        return corrupt("not a tar header; unpack a compressed file first");
    }
    if (is_extra(entry->type)) {
        return take_extra_header(*entry);
    }
    return take_member(*std::move(entry));
}

// Parses a header block; nullopt: it is not a header.
std::optional<TarWalk::Entry> TarWalk::read_entry(Block block) {
    constexpr std::size_t kSizeAt = 124;
    constexpr std::size_t kTypeAt = 156;
    constexpr std::size_t kMagicAt = 257;
    constexpr std::size_t kPrefixAt = 345;
    const auto size_bytes = number_field(block, kSizeAt, 12);
    if (!checksum_fits(block) || !size_bytes) {
        return std::nullopt;
    }
    Entry entry{block[kTypeAt], std::string{text_field(block, 0, 100)}, *size_bytes};
    // GNU's own format uses the prefix's place for other fields.
    const bool is_posix = std::memcmp(block.data() + kMagicAt, "ustar\0", 6) == 0;
    if (const auto prefix = text_field(block, kPrefixAt, 155); is_posix && !prefix.empty()) {
        entry.name = fmt::format("{}/{}", prefix, entry.name);
    }
    return entry;
}

Result<std::optional<TarMember>> TarWalk::take_extra_header(const Entry& entry) {
    if (entry.size_bytes > kTarExtraBytesMax) {
        return corrupt("a name of over 1 MiB");
    }
    if (entry.size_bytes > bytes_ - std::min(at_ + kTarBlockBytes, bytes_)) {
        return corrupt("ends inside an entry");
    }
    if (entry.type != 'g') {
        begin_ = begin_.value_or(at_);
    }
    at_ += kTarBlockBytes;
    extra_ = Extra{entry.type, entry.size_bytes};
    if (entry.size_bytes == 0) {
        STOKER_TRY_VOID(take_extra({}));
    }
    return std::nullopt;
}

Result<std::optional<TarMember>> TarWalk::take_member(Entry entry) {
    Overrides own = std::exchange(next_, {});
    TarMember member;
    member.name = std::move(own.name).value_or(std::move(entry.name));
    member.kind = kind_of(entry.type, member.name, own.is_sparse);
    member.begin = std::exchange(begin_, {}).value_or(at_);
    member.data = at_ + kTarBlockBytes;
    member.size_bytes =
        has_data(entry.type, member.name) ? own.size_bytes.value_or(entry.size_bytes) : 0;
    if (member.data > bytes_ || member.size_bytes > bytes_ - member.data) {
        return corrupt("ends inside an entry");
    }
    if (member.name.find('\0') != std::string::npos) {
        return corrupt("a name with a zero byte");
    }
    at_ = member.data;
    skip(member.size_bytes);
    return member;
}

Status TarWalk::take_extra(std::string_view body) {
    const Extra extra = *std::exchange(extra_, {});
    if (extra.type == 'L') {
        next_.name = std::string{body.substr(0, body.find('\0'))};
    } else if (extra.type != 'K') {
        Overrides read = extra.type == 'g' ? Overrides{} : std::move(next_);
        if (!read_pax(body, read)) {
            return corrupt("a damaged pax header");
        }
        if (extra.type != 'g') {
            next_ = std::move(read);
        } else if (read.name || read.size_bytes) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("at byte {}: a pax header sets the path or size of all members", at_));
        }
    }
    skip(extra.size_bytes);
    return begin_ && at_ >= bytes_ ? Status{corrupt("ends inside an entry")} : Status{};
}

// Parses records "LENGTH KEY=VALUE\n" of a pax header; only path, size and GNU's records of a
// sparse file matter, others are skipped. False: malformed.
bool TarWalk::read_pax(std::string_view text, Overrides& next) {
    while (!text.empty()) {
        std::size_t length = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), length);
        const auto digits = static_cast<std::size_t>(read.ptr - text.data());
        if (read.ec != std::errc{} || length > text.size() || length < digits + 2 ||
            text[digits] != ' ' || text[length - 1] != '\n') {
            return false;
        }
        const std::string_view record = text.substr(digits + 1, length - digits - 2);
        if (record.starts_with("path=")) {
            next.name = record.substr(5);
        } else if (record.starts_with("size=")) {
            const char* end = record.data() + record.size();
            const auto size = std::from_chars(record.data() + 5, end, next.size_bytes.emplace());
            if (size.ec != std::errc{} || size.ptr != end) {
                return false;
            }
        } else if (record.starts_with("GNU.sparse.")) {
            next.is_sparse = true;
        }
        text.remove_prefix(length);
    }
    return true;
}

// Moves to the next header. The data must be in the file; its last padding may be missing.
void TarWalk::skip(std::uint64_t data_bytes) {
    const std::uint64_t padded =
        (data_bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
    at_ += std::min(padded, bytes_ - at_);
}

}  // namespace stoker::domain
