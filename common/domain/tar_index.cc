#include "common/domain/tar_index.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

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

// The member's name, split, if the member belongs to a sample.
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

Status TarIndex::step(std::span<const std::byte> bytes, Listing& samples) {
    STOKER_TRY(const auto member, walk_.take(bytes));
    return member ? add_member(*member, samples) : Status{};
}

// Checks the extension of the sample's next member and returns it in lower case.
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
            fmt::format("sample '{}' has two members with extension '.{}'", stem_, extension));
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
        STOKER_TRY_VOID(end(samples));
        stem_ = name->stem;
        begin_ = member.begin;
    }
    STOKER_TRY(std::string extension, new_extension(name->extension));
    extensions_.push_back(std::move(extension));
    end_ = member.end();
    return {};
}

Status TarIndex::end(Listing& samples) {
    if (extensions_.empty()) {
        return {};
    }
    extensions_.clear();
    std::string_view stem{stem_};
    if (stem.starts_with("./")) {
        stem.remove_prefix(2);
    }
    return add_sample(object(), {std::string{stem}, begin_, end_ - begin_}, samples);
}

}  // namespace stoker::domain
