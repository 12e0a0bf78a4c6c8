#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stoker::world {

// Kinds of faults; most end after a while.
enum class Fault : std::uint8_t {
    kKill,           // a sidecar, as by kill -9
    kKillInChange,   // as kKill, in the middle of a change of the disk
    kShutDown,       // a sidecar, as by SIGTERM
    kStop,           // a sidecar does not run for a while
    kCut,            // a connection of a sidecar is cut
    kTrainerKilled,  // its next process continues after the last batch
    kPowerCut,       // a node: unsynced blocks and names may be lost; its pods start again there
    kNodeLost,     // as kPowerCut, but its pods start again on other nodes; the node may come back
    kNodeRestart,  // a node shuts down and starts again
    kDiskBroken,   // one kind of call to the disk fails
    kDiskFull,
    kDiskReadOnly,
    kBitRot,  // one bit of a segment
    kOriginDown,
    kOriginStalled,
    kOriginThrottled,
    kOriginLies,  // answers are not as listed
    kKeyRefused,  // the origin refuses one pod's key
    kGrant,       // the operator grants another number of bytes on one node

    // Faults of the network between nodes, and of the operator's messages about peers:
    kLinkCut,         // between two nodes, one way or both: nothing arrives for a while
    kLinkSlow,        // all links of a node are slower
    kLinkReset,       // one connection is reset; both ends learn it
    kLinkHalfOpen,    // one connection is reset; one end learns it only after half a minute
    kLinkWrongBytes,  // payloads from a node arrive with a wrong byte
    kPeersRefused,    // new connections to a pod fail
    kLeafRefused,     // a pod's certificate has expired, or another authority has signed it
    kGroupLate,       // groups reach a pod late
    kGroupLost,       // groups do not reach a pod until its stream is opened again
    kGroupOld,        // an older group reaches a pod after the newest
};
inline constexpr std::size_t kFaultKinds = 29;
std::string_view to_string(Fault fault);

// A sidecar's work at the moment of a fault.
enum class Situation : std::uint8_t {
    kSeeking,     // the sidecar neither leads nor follows yet
    kFollowing,   // another process leads, or should lead
    kRecovering,  // it leads; it recovers the directory or lists the origin
    kLeading,     // it leads and serves, and none of the next three applies
    kShrinking,   // it serves, with more residents than its grant, or 2 s after a smaller grant
    kBorrowing,   // it serves, and its window has borrowed from the grant
    kRetiring,    // it gives the lead up, and finishes its work
    kInGroup,  // it serves as one of at least two peers; counted in addition to another situation
};
inline constexpr std::size_t kSituations = 8;
std::string_view to_string(Situation situation);

// By kind of fault: how often sidecars that the fault met (alone, or with their node or the origin)
// were in each situation.
using FaultTable = std::array<std::array<std::uint64_t, kSituations>, kFaultKinds>;

}  // namespace stoker::world
