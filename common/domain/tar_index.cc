#include "common/domain/tar_index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "common/domain/range_place.h"

namespace stoker::domain {

namespace {

std::string lower_case(std::string_view text) {
    std::string lower{text};
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower;
}

bool is_metadata(std::string_view name) {
    const std::string_view first = name.substr(0, name.find('/'));
    return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

// The member's name, if it is one of a sample.
std::optional<TarMemberName> sample_member(const TarMember& member) {
    return member.kind == TarMember::Kind::kFile ? split_member_name(member.name) : std::nullopt;
}

}  // namespace

std::optional<TarMemberName> split_member_name(std::string_view name) {
    const std::size_t slash = name.rfind('/');
    const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
    const std::size_t dot = name.find('.', base);
    if (dot == std::string_view::npos || dot == base || is_metadata(name)) {
        return std::nullopt;
    }
    return TarMemberName{name.substr(0, dot), name.substr(dot + 1)};
}

Result<TarSample> parse_tar_sample(std::span<const std::byte> bytes) {
    TarSample sample;
    TarWalk walk{bytes.size()};
    while (const auto wanted = walk.next()) {
        STOKER_TRY(const auto member, walk.take(bytes.subspan(wanted->offset, wanted->length)));
        const auto name = member ? sample_member(*member) : std::nullopt;
        if (!name) {
            continue;
        }
        if (sample.members.empty()) {
            sample.stem = name->stem;
        } else if (sample.stem != name->stem) {
            return fail(
                ErrorCode::kCorruption,
                fmt::format("has members of '{}' and of '{}'", sample.stem, name->stem));
        }
        sample.members.push_back({lower_case(name->extension), member->data, member->size_bytes});
    }
    if (sample.members.empty()) {
        return fail(ErrorCode::kCorruption, "has no member of a sample");
    }
    return sample;
}

bool is_tar_shard(std::string_view key) {
    return key.ends_with(".tar");
}

bool is_compressed_shard(std::string_view key) {
    constexpr std::array<std::string_view, 8> kEndings{
        ".tar.gz", ".tgz", ".tar.zst", ".tar.bz2", ".tar.xz", ".tar.lz4", ".tbz2", ".txz"};
    return std::ranges::any_of(kEndings, [&](std::string_view it) { return key.ends_with(it); });
}

Result<TarIndex> TarIndex::of(ListedObject shard) {
    if (shard.key.size() > std::numeric_limits<std::uint16_t>::max()) {
        return fail(ErrorCode::kInvalidArgument, "the key of a tar shard has 64 KiB or more");
    }
    return TarIndex{std::move(shard)};
}

std::optional<TarRange> TarIndex::next() const {
    const auto wanted = walk_.next();
    if (!wanted) {
        return std::nullopt;
    }
    const bool are_small = wanted->offset <= kReadOverBytes * (samples_ + 1);
    const std::uint64_t length = are_small ? kLongWindowBytes : kShortWindowBytes;
    const std::uint64_t left = shard_.size_bytes - std::min(wanted->offset, shard_.size_bytes);
    return TarRange{wanted->offset, std::max(wanted->length, std::min(length, left))};
}

Status TarIndex::take(std::span<const std::byte> window, Listing& samples) {
    const Status taken = take_all(window, samples);
    return taken ? taken : fail(taken.error().prefixed(fmt::format("'{}'", shard_.key)));
}

Status TarIndex::take_all(std::span<const std::byte> window, Listing& samples) {
    std::uint64_t begin = 0;  // of the window in the shard
    if (const auto wanted = walk_.next()) {
        begin = wanted->offset;
    }
    while (const auto wanted = walk_.next()) {
        const std::uint64_t at = wanted->offset - begin;
        if (at > window.size() || wanted->length > window.size() - at) {
            return {};
        }
        STOKER_TRY(const auto member, walk_.take(window.subspan(at, wanted->length)));
        if (member) {
            STOKER_TRY_VOID(add_member(*member, samples));
        }
    }
    return end_sample(samples);
}

// The extension of the sample's next member, in lower case.
Result<std::string> TarIndex::new_extension(std::string_view text) const {
    if (extensions_.size() >= kTarMembersMax || text.size() > kTarExtensionBytesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "sample '{}' has over {} members, or one whose extension has over {} bytes",
                stem_.substr(0, kTarExtensionBytesMax),
                kTarMembersMax,
                kTarExtensionBytesMax));
    }
    std::string extension = lower_case(text);
    if (extension == kTarKeyMember) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "sample '{}' has a member '.{}', which is the key's name", stem_, extension));
    }
    if (std::ranges::find(extensions_, extension) != extensions_.end()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("sample '{}' has two members '.{}'", stem_, extension));
    }
    return extension;
}

Status TarIndex::add_member(const TarMember& member, Listing& samples) {
    if (member.kind == TarMember::Kind::kSparse) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("'{}' is a sparse file, which cannot be read in place", member.name));
    }
    const auto name = sample_member(member);
    if (!name) {
        return {};
    }
    if (extensions_.empty() || stem_ != name->stem) {
        STOKER_TRY_VOID(end_sample(samples));
        stem_ = name->stem;
        begin_ = member.begin;
    }
    STOKER_TRY(std::string extension, new_extension(name->extension));
    extensions_.push_back(std::move(extension));
    end_ = member.end();
    return {};
}

Status TarIndex::end_sample(Listing& samples) {
    if (extensions_.empty()) {
        return {};
    }
    extensions_.clear();
    ++samples_;
    const RangePlace place{
        begin_, shard_.size_bytes, static_cast<std::uint16_t>(shard_.key.size()), shard_.etag};
    const std::string_view stem{stem_};
    return samples.add(
        fmt::format("{}/{}", shard_.key, stem.starts_with("./") ? stem.substr(2) : stem),
        end_ - begin_,
        encode_range_place(place));
}

}  // namespace stoker::domain
