#include "sidecar/origin/memory_limit.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace stoker::sidecar {
namespace {

TEST(MemoryLimit, IsThatOfTheControlGroup) {
    const test::TempFolder folder;
    EXPECT_EQ(memory_limit(folder.path()), std::nullopt);
    std::filesystem::create_directory(folder.path() + "/memory");
    std::ofstream{folder.path() + "/memory/memory.limit_in_bytes"} << "536870912\n";
    EXPECT_EQ(memory_limit(folder.path()), 536'870'912U) << "version 1";
    std::ofstream{folder.path() + "/memory.max"} << "1073741824\n";
    EXPECT_EQ(memory_limit(folder.path()), 1'073'741'824U) << "version 2";
}

TEST(MemoryLimit, MaxIsNone) {
    const test::TempFolder folder;
    std::ofstream{folder.path() + "/memory.max"} << "max\n";
    EXPECT_EQ(memory_limit(folder.path()), std::nullopt);
}

}  // namespace
}  // namespace stoker::sidecar
