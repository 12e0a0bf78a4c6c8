#include "sidecar/origin/memory_limit.h"

#include <fstream>

namespace stoker::sidecar {

std::optional<std::uint64_t> memory_limit(const std::string& root) {
    for (const char* file : {"/memory.max", "/memory/memory.limit_in_bytes"}) {
        std::uint64_t bytes = 0;
        if (std::ifstream{root + file} >> bytes) {  // not "max"
            return bytes;
        }
    }
    return std::nullopt;
}

}  // namespace stoker::sidecar
