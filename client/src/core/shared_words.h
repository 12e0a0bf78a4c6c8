#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/result.h"

namespace stoker::client {

// An array of 32-bit words, initially 0, that processes share: those forked later, or those that
// map the same file. Uses memory page by page, as words are written. Any thread and process may
// read and write. Move-only.
class SharedWords {
public:
    // Words for this process and its forks. Throws std::bad_alloc.
    explicit SharedWords(std::size_t count);

    // The words of a file, from `offset_bytes` on, which is a multiple of 4. Keeps no descriptor.
    // kInvalidArgument: the file ends before the last word; kUnavailable, kResourceExhausted: it
    // cannot be mapped.
    static Result<SharedWords> of_file(int file, std::uint64_t offset_bytes, std::size_t count);

    SharedWords(SharedWords&& other) noexcept;
    SharedWords& operator=(SharedWords&& other) noexcept;
    ~SharedWords();

    std::atomic<std::uint32_t>& operator[](std::size_t at) const { return words_[at]; }

private:
    using Word = std::atomic<std::uint32_t>;
    static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint32_t));

    SharedWords(void* memory, std::size_t bytes, std::uint64_t offset_bytes);

    void* memory_ = nullptr;
    std::size_t bytes_ = 0;
    Word* words_ = nullptr;
};

}  // namespace stoker::client
