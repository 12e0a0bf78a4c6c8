#include "client/src/core/shared_words.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/unique_fd.h"

namespace stoker::client {
namespace {

constexpr std::size_t kWords = 1000;
constexpr std::uint64_t kOffset = 64;

UniqueFd file_of(std::uint64_t bytes) {
    UniqueFd file{::memfd_create("words", 0)};
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    return file;
}

TEST(SharedWords, AreZeroAtFirst) {
    const SharedWords words{kWords};
    EXPECT_EQ(words[0].load(), 0U);
    EXPECT_EQ(words[kWords - 1].load(), 0U);
}

TEST(SharedWords, WritersOfOneFileShareThem) {
    UniqueFd file = file_of(kOffset + 4 * kWords);
    const auto first = SharedWords::of_file(file.get(), kOffset, kWords);
    const auto second = SharedWords::of_file(file.get(), kOffset, kWords);
    ASSERT_TRUE(first && second);
    file.reset();
    (*first)[kWords - 1].store(7);
    EXPECT_EQ((*second)[kWords - 1].load(), 7U);
    EXPECT_EQ((*second)[0].load(), 0U);
}

TEST(SharedWords, AFileThatEndsBeforeTheLastWordIsRefused) {
    const UniqueFd file = file_of(4 * kWords);
    EXPECT_TRUE(SharedWords::of_file(file.get(), 0, kWords));
    for (const std::uint64_t offset : {4, 2}) {
        const auto refused = SharedWords::of_file(file.get(), offset, kWords);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    }
    EXPECT_FALSE(SharedWords::of_file(-1, 0, kWords));
}

}  // namespace
}  // namespace stoker::client
