#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/domain/ids.h"

// The names of the files in a node directory (docs/design/node-directory.md), relative to it.
// Shared by the sidecar, which writes them, and the client library, which opens them. Pure.
namespace stoker::domain {

inline constexpr std::string_view kLockFile = "lock";
inline constexpr std::string_view kLeaderSocket = "leader.sock";
inline constexpr std::string_view kSegmentFolder = "segments";

// "segments/17.seg": decimal, no leading zeroes.
std::string segment_file(SegmentSeq seq);

// The number in "17.seg" (the name inside the folder); nullopt for any other name, "017.seg" and
// "4294967296.seg" too.
std::optional<SegmentSeq> parse_segment_name(std::string_view name);

// "segments/next.2048": an empty file that says that no segment of this number or above was made.
std::string sequence_mark_file(std::uint64_t number);
std::optional<std::uint64_t> parse_sequence_mark_name(std::string_view name);

// "manifest.00000000deadbeef", "residency.00000000deadbeef", "state.00000000deadbeef.json".
std::string manifest_file(RevisionId revision);
std::string residency_file(RevisionId revision);
std::string state_file(RevisionId revision);

// The revision in "manifest.00000000deadbeef"; nullopt for any other name. Likewise for the other
// two.
std::optional<RevisionId> parse_manifest_name(std::string_view name);
std::optional<RevisionId> parse_residency_name(std::string_view name);
std::optional<RevisionId> parse_state_name(std::string_view name);

}  // namespace stoker::domain
