#include "common/domain/megatron_index.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/base/wire.h"

namespace stoker::domain {

namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kLengthBytes = 4;
constexpr std::uint64_t kOffsetBytes = 8;

tl::unexpected<Error> corrupt(std::string message) {
    return fail(ErrorCode::kCorruption, std::move(message));
}

}  // namespace

// The numpy type of Megatron's DType code; codes begin at 1.
std::optional<MegatronIndex::TokenType> MegatronIndex::token_type(std::uint8_t code) {
    constexpr std::array<TokenType, 8> kTypes{
        {{"uint8", 1},
         {"int8", 1},
         {"int16", 2},
         {"int32", 4},
         {"int64", 8},
         {"float64", 8},
         {"float32", 4},
         {"uint16", 2}}};
    return code == 0 || code > kTypes.size() ? std::nullopt : std::optional{kTypes[code - 1]};
}

std::optional<ByteRange> MegatronIndex::wanted() const {
    if (!type_) {
        return ByteRange{0, kHeaderBytes};
    }
    if (!sizes_.empty()) {
        return ByteRange{
            kHeaderBytes + kLengthBytes * count_ + kOffsetBytes * done_,
            kOffsetBytes * sizes_.size()};
    }
    if (done_ == count_) {
        return std::nullopt;
    }
    const std::uint64_t run = std::min(kRunSequences, count_ - done_);
    return ByteRange{kHeaderBytes + kLengthBytes * done_, kLengthBytes * run};
}

Status MegatronIndex::step(std::span<const std::byte> bytes, Listing& samples) {
    if (!type_) {
        return take_header(bytes);
    }
    return sizes_.empty() ? take_lengths(bytes) : take_offsets(bytes, samples);
}

Status MegatronIndex::take_header(std::span<const std::byte> bytes) {
    WireReader in{bytes};
    const std::string_view magic = in.get_text(kMagic.size());
    const auto version = in.get<std::uint64_t>();
    const auto type = token_type(in.get<std::uint8_t>());
    count_ = in.get<std::uint64_t>();
    const auto documents = in.get<std::uint64_t>();
    if (!in.ok() || magic != kMagic) {
        return corrupt("is not the index of a Megatron dataset");
    }
    if (version != kVersion) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("has version {}, and only version {} is known", version, kVersion));
    }
    if (!type) {
        return corrupt("has tokens of an unknown type");
    }
    STOKER_TRY_VOID(check_length(documents));
    STOKER_TRY_VOID(check_sample_count(data_, count_));
    type_ = type;
    return {};
}

Status MegatronIndex::check_length(std::uint64_t documents) const {
    const std::uint64_t size = object().size_bytes;
    const std::uint64_t of_sequence = kLengthBytes + kOffsetBytes;
    const bool fits = count_ <= size / of_sequence && documents <= size / kOffsetBytes;
    const std::uint64_t tables = fits ? of_sequence * count_ + kOffsetBytes * documents : 0;
    const std::uint64_t rest = size - kHeaderBytes;
    if (!fits || (rest != tables && rest != tables + count_)) {
        return corrupt(fmt::format(
            "has {} bytes, which do not fit to its {} sequences and {} documents",
            size,
            count_,
            documents));
    }
    return {};
}

Status MegatronIndex::take_lengths(std::span<const std::byte> bytes) {
    WireReader in{bytes};
    while (in.left() > 0) {
        const auto tokens = in.get<std::int32_t>();
        if (tokens < 0) {
            const std::uint64_t sequence = done_ + sizes_.size();
            return corrupt(fmt::format("sequence {} has {} tokens", sequence, tokens));
        }
        sizes_.push_back(static_cast<std::uint64_t>(tokens) * type_->bytes);
    }
    return {};
}

Status MegatronIndex::take_offsets(std::span<const std::byte> bytes, Listing& samples) {
    WireReader in{bytes};
    for (const std::uint64_t size : sizes_) {
        const auto offset = in.get<std::int64_t>();
        const auto begin = static_cast<std::uint64_t>(offset);
        if (offset < 0 || begin > data_.size_bytes || size > data_.size_bytes - begin) {
            return corrupt(fmt::format(
                "sequence {} has {} bytes from byte {} of '{}', which has {} bytes",
                done_,
                size,
                offset,
                data_.key,
                data_.size_bytes));
        }
        if (data_.size_bytes > 0) {
            const std::string name = fmt::format("{}.{}", number_name(done_), type_->name);
            STOKER_TRY_VOID(add_sample(data_, {name, begin, size}, samples));
        }
        data_end_ = std::max(data_end_, begin + size);
        ++done_;
    }
    sizes_.clear();
    return {};
}

// Checks that NAME.bin ends with the last sequence: Megatron's writers put nothing after it.
Status MegatronIndex::end(Listing& samples) {
    static_cast<void>(samples);
    if (data_end_ != data_.size_bytes) {
        return corrupt(fmt::format(
            "its sequences end at byte {} of '{}', which has {} bytes: they do not belong together",
            data_end_,
            data_.key,
            data_.size_bytes));
    }
    return {};
}

}  // namespace stoker::domain
