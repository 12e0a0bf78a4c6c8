#include "common/domain/tfrecord_index.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/base/crc32c.h"
#include "common/base/wire.h"

namespace stoker::domain {

namespace {

bool is_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Removes a part number such as "-00007-of-00128" from the end; false: there is none.
bool remove_part_number(std::string_view& key) {
    constexpr std::string_view kOf = "-of-";
    const std::size_t of = key.rfind(kOf);
    if (of == std::string_view::npos || !is_number(key.substr(of + kOf.size()))) {
        return false;
    }
    const std::size_t dash = key.substr(0, of).rfind('-');
    if (dash == std::string_view::npos || !is_number(key.substr(dash + 1, of - dash - 1))) {
        return false;
    }
    key = key.substr(0, dash);
    return true;
}

}  // namespace

bool is_tfrecord_shard(std::string_view key) {
    constexpr std::array<std::string_view, 3> kEndings{".tfrecord", ".tfrecords", ".tfrec"};
    const bool is_part = remove_part_number(key);
    const std::string_view file = key.substr(key.rfind('/') + 1);  // npos + 1 is 0
    return (is_part && file.find('.') == std::string_view::npos) ||
           std::ranges::any_of(kEndings, [&](std::string_view it) { return key.ends_with(it); });
}

std::optional<ByteRange> TfRecordIndex::wanted() const {
    const std::uint64_t left = object().size_bytes - at_;
    const std::uint64_t most = record_ ? kFooterBytes + kHeaderBytes : kHeaderBytes;
    return left == 0 ? std::nullopt : std::optional{ByteRange{at_, std::min(most, left)}};
}

Status TfRecordIndex::step(std::span<const std::byte> bytes, Listing& samples) {
    if (record_) {
        const std::uint32_t crc = unmasked_crc32c(WireReader{bytes}.get<std::uint32_t>());
        const ShardSample sample{number_name(count_++), record_->payload, record_->size_bytes, crc};
        STOKER_TRY_VOID(add_sample(object(), sample, samples));
        record_.reset();
        at_ += kFooterBytes;
        bytes = bytes.subspan(kFooterBytes);
    }
    return bytes.empty() ? Status{} : take_header(bytes);
}

Status TfRecordIndex::take_header(std::span<const std::byte> bytes) {
    constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);
    WireReader in{bytes};
    const auto length = in.get<std::uint64_t>();
    const auto crc = in.get<std::uint32_t>();
    const std::string where = fmt::format("at byte {}: ", at_);
    if (!in.ok()) {
        return fail(ErrorCode::kCorruption, where + "ends inside the header of a record");
    }
    if (unmasked_crc32c(crc) != crc32c(bytes.first(kLengthBytes))) {
        return fail(
            ErrorCode::kCorruption,
            where + (at_ == 0 ? "no TFRecord file, or a compressed one, whose records cannot be "
                                "read one by one: unpack it first"
                              : "the length of a record does not match its CRC"));
    }
    const std::uint64_t left = object().size_bytes - at_ - kHeaderBytes;
    if (left < kFooterBytes || length > left - kFooterBytes) {
        return fail(ErrorCode::kCorruption, where + "ends inside a record");
    }
    record_ = Record{at_ + kHeaderBytes, length};
    at_ = record_->payload + length;
    return {};
}

}  // namespace stoker::domain
