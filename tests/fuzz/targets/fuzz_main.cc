#include <filesystem>
#include <fstream>

#include "tests/fuzz/targets/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    stoker::fuzz::run(std::as_bytes(std::span{data, size}));
    return 0;
}

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
    if (const char* folder = std::getenv("STOKER_FUZZ_SEEDS"); folder != nullptr) {
        std::filesystem::create_directories(folder);
        std::size_t number = 0;
        for (const std::string& seed : stoker::fuzz::seeds()) {
            const std::string name = "seed-" + std::to_string(number++);
            std::ofstream{std::filesystem::path{folder} / name, std::ios::binary} << seed;
        }
        std::exit(0);
    }
    return 0;
}
