#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stoker::sidecar {

// Bytes of memory that the kernel gives to this container, as its control group says; nullopt: no limit, or none that
// can be read. `root`: where control groups are mounted, of version 2 or 1. Reads a file. Any thread.
std::optional<std::uint64_t> memory_limit(const std::string& root = "/sys/fs/cgroup");

}  // namespace stoker::sidecar
