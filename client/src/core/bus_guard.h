#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// Reads mapped files without crashing. A page that lies beyond its truncated file, or that the disk
// cannot read, raises SIGBUS on access; these functions return false or nullopt instead.
// Thread-safe; the caller guarantees that the addresses are mapped.
//
// They need our SIGBUS handler, which passes every other SIGBUS on to the previous handler or the
// default action. If another handler was installed over ours, install_bus_guard() puts ours back on
// top, with the other one behind it.
namespace stoker::client {

// One system call if already installed.
void install_bus_guard();

// Copies `from` to `to`, which must have room. false: part of it cannot be read.
[[nodiscard]] bool read_guarded(std::span<const std::byte> from, std::byte* to);

// Loads one word with acquire order.
[[nodiscard]] std::optional<std::uint64_t> load_guarded(const std::uint64_t* word);

// crc32c() of the bytes.
[[nodiscard]] std::optional<std::uint32_t> crc32c_guarded(std::span<const std::byte> bytes);

}  // namespace stoker::client
