#pragma once

#include <cstdint>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

// How the node program hands the descriptor of a FUSE mount to the pod's stoker-files
// (docs/adr/0023-files-access.md): messages of 16 bytes over a SOCK_SEQPACKET Unix socket, and a
// descriptor beside some of them.
//
//   stoker-files  kHello, with the mount's descriptor and revision if it has them already
//   stoker-node   kMount, with the descriptor, and the revision that was told; or
//                 kKept: the node program had no descriptor and keeps the one of kHello; or
//                 kLost: nobody has the descriptor, and the files cannot be mounted anew
//   stoker-files  kShows: the mount shows this revision from now on
namespace stoker::files {

inline constexpr const char* kHandOverSocket = "files.sock";

enum class HandOverKind : std::uint32_t {
    kHello = 1,
    kMount = 2,
    kKept = 3,
    kLost = 4,
    kShows = 5
};

struct HandOver {
    HandOverKind kind = HandOverKind::kHello;
    std::uint64_t revision = 0;  // 0: none yet

    bool operator==(const HandOver&) const = default;
};

struct ReceivedHandOver {
    HandOver message;
    UniqueFd descriptor;  // invalid: none came
};

// Sends one message without waiting. `descriptor`: -1: none. kUnavailable: the peer has hung up, or
// does not read.
Status send_hand_over(int socket, const HandOver& message, int descriptor);

// Receives the next message and at most one descriptor; the kernel drops further ones.
// `takes_descriptor` false: drops all, because dropping or closing a stranger's descriptor later
// can block. kUnavailable: the peer has hung up, or the socket does not block and no message waits.
// kInvalidArgument: not a message of this protocol.
Result<ReceivedHandOver> receive_hand_over(int socket, bool takes_descriptor);

// Whether the descriptor is an open FUSE connection. Never waits for a file server.
bool is_fuse_connection(int descriptor);

}  // namespace stoker::files
