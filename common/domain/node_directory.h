#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/domain/ids.h"

// File names in a node directory (docs/design/node-directory.md). The sidecar writes the files, the
// client library opens them. Pure.
namespace stoker::domain {

// The folders of a node directory.
inline constexpr std::string_view kControlFolder = "control";  // only for the Dataset's namespace
inline constexpr std::string_view kDataFolder = "data";        // read-only for trainers and guests
// guests/<namespace>/leader.sock: the leader's socket for each namespace with which the Dataset is
// shared. The node program creates the folders and mounts into a guest's sidecar only that guest's
// own, as <node directory>/guests.
inline constexpr std::string_view kGuestsFolder = "guests";

// Files in control/; the socket is also in each folder of guests/.
inline constexpr std::string_view kLockFile = "lock";
inline constexpr std::string_view kLeaderSocket = "leader.sock";
inline constexpr std::string_view kSecretFile = "secret";

// Files in data/.
inline constexpr std::string_view kSegmentFolder = "segments";
inline constexpr std::string_view kCurrentFile = "current.json";

std::string control_folder(std::string_view node_directory);
std::string data_folder(std::string_view node_directory);
std::string guests_folder(std::string_view node_directory);

// Returns "segments/17.seg": decimal, no leading zeroes.
std::string segment_file(SegmentSeq seq);

// The number in "17.seg" (the name inside the folder); nullopt for any other name, including
// "017.seg" and "4294967296.seg".
std::optional<SegmentSeq> parse_segment_name(std::string_view name);

// Returns "segments/next.2048": an empty file; it records that no segment with this number or above
// exists.
std::string sequence_mark_file(std::uint64_t number);
std::optional<std::uint64_t> parse_sequence_mark_name(std::string_view name);

// Return "manifest.00000000deadbeef" and "residency.00000000deadbeef" in data/,
// "state.00000000deadbeef.json" in control/.
std::string manifest_file(RevisionId revision);
std::string residency_file(RevisionId revision);
std::string state_file(RevisionId revision);

// The revision in "manifest.00000000deadbeef"; nullopt for any other name. The other two functions
// parse the names of the other two files.
std::optional<RevisionId> parse_manifest_name(std::string_view name);
std::optional<RevisionId> parse_residency_name(std::string_view name);
std::optional<RevisionId> parse_state_name(std::string_view name);

}  // namespace stoker::domain
