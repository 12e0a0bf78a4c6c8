#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/domain/ids.h"

// The names in a node directory (docs/design/node-directory.md). Shared by the sidecar, which
// writes the files, and the client library, which opens them. Pure.
namespace stoker::domain {

// The folders of a node directory.
inline constexpr std::string_view kControlFolder = "control";  // the owner's sidecars only
inline constexpr std::string_view kDataFolder = "data";        // read-only for trainers and guests
// guests/<namespace>/leader.sock: the door that the leader opens to each namespace that the Dataset
// is shared with. The node program makes the folders, and mounts into a guest's sidecar only its
// own, as <node directory>/guests.
inline constexpr std::string_view kGuestsFolder = "guests";

// In control/; the socket also in each folder of guests/.
inline constexpr std::string_view kLockFile = "lock";
inline constexpr std::string_view kLeaderSocket = "leader.sock";
inline constexpr std::string_view kSecretFile = "secret";

// In data/.
inline constexpr std::string_view kSegmentFolder = "segments";
inline constexpr std::string_view kCurrentFile = "current.json";

std::string control_folder(std::string_view node_directory);
std::string data_folder(std::string_view node_directory);
std::string guests_folder(std::string_view node_directory);

// "segments/17.seg": decimal, no leading zeroes.
std::string segment_file(SegmentSeq seq);

// The number in "17.seg" (the name inside the folder); nullopt for any other name, "017.seg" and
// "4294967296.seg" too.
std::optional<SegmentSeq> parse_segment_name(std::string_view name);

// "segments/next.2048": an empty file that says that no segment of this number or above was made.
std::string sequence_mark_file(std::uint64_t number);
std::optional<std::uint64_t> parse_sequence_mark_name(std::string_view name);

// "manifest.00000000deadbeef" and "residency.00000000deadbeef" in data/,
// "state.00000000deadbeef.json" in control/.
std::string manifest_file(RevisionId revision);
std::string residency_file(RevisionId revision);
std::string state_file(RevisionId revision);

// The revision in "manifest.00000000deadbeef"; nullopt for any other name. Likewise for the other
// two.
std::optional<RevisionId> parse_manifest_name(std::string_view name);
std::optional<RevisionId> parse_residency_name(std::string_view name);
std::optional<RevisionId> parse_state_name(std::string_view name);

}  // namespace stoker::domain
