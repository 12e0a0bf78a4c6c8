#include "common/domain/node_directory.h"

#include <charconv>

#include <fmt/core.h>

#include "common/domain/parse_revision.h"

namespace stoker::domain {

namespace {

constexpr std::string_view kSegmentSuffix = ".seg";
constexpr std::string_view kSequenceMarkPrefix = "next.";
constexpr std::string_view kManifestPrefix = "manifest.";
constexpr std::string_view kResidencyPrefix = "residency.";
constexpr std::string_view kStatePrefix = "state.";
constexpr std::string_view kStateSuffix = ".json";

// The text between prefix and suffix; nullopt if either is missing.
std::optional<std::string_view> inner_text(
    std::string_view name, std::string_view prefix, std::string_view suffix) {
    if (name.size() < prefix.size() + suffix.size() || !name.starts_with(prefix) ||
        !name.ends_with(suffix)) {
        return std::nullopt;
    }
    return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
}

template <class Number>
std::optional<Number> parse_numbered(
    std::string_view name, std::string_view prefix, std::string_view suffix) {
    const auto digits = inner_text(name, prefix, suffix);
    if (!digits.has_value()) {
        return std::nullopt;
    }
    Number value = 0;
    const auto* end = digits->data() + digits->size();
    const auto [stop, error] = std::from_chars(digits->data(), end, value);
    if (error != std::errc{} || stop != end || fmt::format("{}", value) != *digits) {
        return std::nullopt;
    }
    return value;
}

std::optional<RevisionId> parse_named(
    std::string_view name, std::string_view prefix, std::string_view suffix) {
    const auto digits = inner_text(name, prefix, suffix);
    return digits ? parse_revision(*digits) : std::nullopt;
}

}  // namespace

std::string control_folder(std::string_view node_directory) {
    return fmt::format("{}/{}", node_directory, kControlFolder);
}

std::string data_folder(std::string_view node_directory) {
    return fmt::format("{}/{}", node_directory, kDataFolder);
}

std::string guests_folder(std::string_view node_directory) {
    return fmt::format("{}/{}", node_directory, kGuestsFolder);
}

std::string segment_file(SegmentSeq seq) {
    return fmt::format("{}/{}{}", kSegmentFolder, seq.value(), kSegmentSuffix);
}

std::optional<SegmentSeq> parse_segment_name(std::string_view name) {
    const auto number = parse_numbered<std::uint32_t>(name, "", kSegmentSuffix);
    return number.has_value() ? std::optional{SegmentSeq{*number}} : std::nullopt;
}

std::string sequence_mark_file(std::uint64_t number) {
    return fmt::format("{}/{}{}", kSegmentFolder, kSequenceMarkPrefix, number);
}

std::optional<std::uint64_t> parse_sequence_mark_name(std::string_view name) {
    return parse_numbered<std::uint64_t>(name, kSequenceMarkPrefix, "");
}

std::string manifest_file(RevisionId revision) {
    return fmt::format("{}{}", kManifestPrefix, to_string(revision));
}

std::string residency_file(RevisionId revision) {
    return fmt::format("{}{}", kResidencyPrefix, to_string(revision));
}

std::string state_file(RevisionId revision) {
    return fmt::format("{}{}{}", kStatePrefix, to_string(revision), kStateSuffix);
}

std::optional<RevisionId> parse_manifest_name(std::string_view name) {
    return parse_named(name, kManifestPrefix, "");
}

std::optional<RevisionId> parse_residency_name(std::string_view name) {
    return parse_named(name, kResidencyPrefix, "");
}

std::optional<RevisionId> parse_state_name(std::string_view name) {
    return parse_named(name, kStatePrefix, kStateSuffix);
}

}  // namespace stoker::domain
