#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// Reads of mapped files that cannot crash. A page of a mapping that its file no longer reaches
// (somebody cut it), or that the disk cannot give, raises SIGBUS at whoever touches it; these
// functions turn that into "no". Thread-safe; the caller makes sure that the addresses are mapped.
//
// They need our handler for SIGBUS. It passes every other SIGBUS on to the handler that was there
// before, or to the default action. Where somebody else's handler was put over ours,
// install_bus_guard() puts ours back on top, with theirs behind it.
namespace stoker::client {

// Costs one system call when it is installed already.
void install_bus_guard();

// Copies `from` to `to`, which has room for it. false: not all of it can be read.
[[nodiscard]] bool read_guarded(std::span<const std::byte> from, std::byte* to);

// One word, with acquire order.
[[nodiscard]] std::optional<std::uint64_t> load_guarded(const std::uint64_t* word);

// crc32c() of the bytes.
[[nodiscard]] std::optional<std::uint32_t> crc32c_guarded(std::span<const std::byte> bytes);

}  // namespace stoker::client
