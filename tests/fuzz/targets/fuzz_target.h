#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// A libFuzzer target of `make fuzz` is a file in this folder that defines these two functions.
// fuzz_main.cc does the rest: with STOKER_FUZZ_SEEDS=FOLDER it only writes the seeds there.
namespace stoker::fuzz {

// Must return for every input. A finding is a crash, a sanitizer's report, or a failed expect().
void run(std::span<const std::byte> input);

// Valid inputs to start from.
std::vector<std::string> seeds();

inline void expect(bool holds, const char* fact) {
    if (!holds) {
        std::fprintf(stderr, "not true: %s\n", fact);
        std::abort();
    }
}

inline std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string string_of(std::span<const std::byte> bytes) {
    return std::string{text_of(bytes)};
}

}  // namespace stoker::fuzz
