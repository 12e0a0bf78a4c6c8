#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker::world {

// One thing that may go wrong, and be mended.
enum class Fault : std::uint8_t {
    kKill,           // a sidecar, as by kill -9
    kKillInChange,   // the same, in the middle of a change of the disk
    kShutDown,       // a sidecar, as by SIGTERM
    kStop,           // a sidecar does not run for a while
    kCut,            // a connection of a sidecar
    kTrainerKilled,  // its next process goes on after its last batch
    kPowerCut,       // a node: unsynced blocks and names may be lost; its pods start again there
    kNodeLost,       // the same, but its pods start again on other nodes; it may come back
    kNodeRestart,    // a node shuts down and starts again
    kDiskBroken,     // one kind of call fails
    kDiskFull,
    kDiskReadOnly,
    kBitRot,  // one bit of a segment
    kOriginDown,
    kOriginStalled,
    kOriginThrottled,
    kOriginLies,  // answers are not as listed
    kKeyRefused,  // the origin refuses one pod's key
    kGrant,       // the operator grants another number of bytes on one node
};
inline constexpr std::size_t kFaultKinds = 19;
std::string_view to_string(Fault fault);

// A sidecar's work at the moment of a fault.
enum class Situation : std::uint8_t {
    kSeeking,     // it neither leads nor follows yet
    kFollowing,   // another process leads, or should lead
    kRecovering,  // it leads; it recovers the directory or lists the origin
    kLeading,     // it leads and serves, and none of the next three
    kShrinking,   // it serves, with more residents than its grant, or 2 s after a smaller grant
    kBorrowing,   // it serves, and its window has borrowed from the grant
    kRetiring,    // it gives the lead up, and finishes its work
};
inline constexpr std::size_t kSituations = 7;
std::string_view to_string(Situation situation);

// How often a sidecar was in each situation when a fault of each kind hit it, its node or the origin.
using FaultTable = std::array<std::array<std::uint64_t, kSituations>, kFaultKinds>;

}  // namespace stoker::world
