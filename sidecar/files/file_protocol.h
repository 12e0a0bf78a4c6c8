#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sidecar/files/file_tree.h"

// Answers the kernel's FUSE protocol (linux/fuse.h, 7.31 and later) from a file tree. Pure: takes
// the bytes of one request, returns what to do. INIT was answered by the program that mounted.
namespace stoker::files {

// How long the kernel may cache names, attributes and the absence of a name: for ever, because a
// mount shows only one revision.
inline constexpr std::uint64_t kValidSeconds = std::uint64_t{1} << 30U;

enum class Step : std::uint8_t {
    kReply,    // write the bytes of `reply`
    kNothing,  // the kernel wants no reply, or the request is damaged
    kWait,     // needs the tree, which is not loaded yet: handle the same bytes again later
    kCancel,   // the request `unique` was cancelled: answer it if it waits for the tree
    kRead,     // reply to request `unique` with `length` bytes of the object from `offset` on
    kRelease,  // write `reply`; the open file `handle` was closed
};

struct Outcome {
    Step step = Step::kNothing;
    std::vector<std::byte> reply;
    std::uint64_t unique = 0;
    std::uint64_t handle = 0;  // number of an open file, for kRead and kRelease
    domain::StoredObject object;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;  // at least 1; the range is inside the object
};

// A reply without payload. `error`: a number of errno.h; 0: success.
std::vector<std::byte> error_reply(std::uint64_t unique, int error);

// The header of a reply that `payload_bytes` follow.
std::vector<std::byte> reply_header(std::uint64_t unique, std::size_t payload_bytes);

// Asks the kernel to send again the requests that another process has read and not answered.
// Kernels before 6.9 do not support this.
std::vector<std::byte> resend_notice();

// The state of the files when a request is handled.
struct ShownFiles {
    const FileTree* tree = nullptr;       // nullptr: not loaded yet
    std::chrono::sys_seconds modified{};  // modification time shown for every file
};

// `new_handle`: the handle to assign if this request opens a file.
Outcome handle(
    std::span<const std::byte> request, const ShownFiles& files, std::uint64_t new_handle);

}  // namespace stoker::files
