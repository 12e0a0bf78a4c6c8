#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sidecar/files/file_tree.h"

// The kernel's FUSE protocol (linux/fuse.h, 7.31 and later), answered from a file tree. Pure: bytes of
// one request in, what to do out. The program that mounted has answered INIT.
namespace stoker::files {

// How long the kernel may keep names, attributes and the absence of a name: for ever. A mount shows
// one revision.
inline constexpr std::uint64_t kValidSeconds = std::uint64_t{1} << 30U;

enum class Step : std::uint8_t {
    kReply,    // write `reply`
    kNothing,  // the kernel wants no reply, or the request is damaged
    kWait,     // needs the tree, which is not here yet: handle the same bytes again later
    kCancel,   // the request `unique` need not be waited for: answer it if it waits for the tree
    kRead,     // reply to `unique` with `length` bytes of the object from `offset` on
    kRelease,  // write `reply`; `handle` was closed
};

struct Outcome {
    Step step = Step::kNothing;
    std::vector<std::byte> reply;
    std::uint64_t unique = 0;
    std::uint64_t handle = 0;  // number of the open file, with kRead and kRelease
    domain::StoredObject object;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // at least 1; the range is inside the object
};

// A reply that has no payload. `error`: of errno.h; 0: success.
std::vector<std::byte> error_reply(std::uint64_t unique, int error);

// The header of a reply with `payload_bytes` behind it.
std::vector<std::byte> reply_header(std::uint64_t unique, std::size_t payload_bytes);

// Asks the kernel to send again the requests that another process has read and not answered. Kernels
// before 6.9 refuse it.
std::vector<std::byte> resend_notice();

// The state of the files when a request is handled.
struct ShownFiles {
    const FileTree* tree = nullptr;       // nullptr: not here yet
    std::chrono::sys_seconds modified{};  // the time of every file
};

// `new_handle`: the number that a file gets if this request opens one.
Outcome handle(
    std::span<const std::byte> request, const ShownFiles& files, std::uint64_t new_handle);

}  // namespace stoker::files
