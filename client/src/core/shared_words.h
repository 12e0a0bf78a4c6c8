#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/mman.h>

namespace stoker::client {

// An array of 32-bit words, all 0 at first, that processes forked later share with this one. Takes
// memory page by page, as words are written. Any thread and process may read and write.
class SharedWords {
public:
    // Throws std::bad_alloc.
    explicit SharedWords(std::size_t count)
        : bytes_(count * sizeof(Word)) {
        if (bytes_ == 0) {
            return;
        }
        void* const memory =
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            throw std::bad_alloc{};
        }
        words_ = static_cast<Word*>(memory);
    }

    SharedWords(const SharedWords&) = delete;
    SharedWords& operator=(const SharedWords&) = delete;

    ~SharedWords() {
        if (words_ != nullptr) {
            ::munmap(words_, bytes_);
        }
    }

    std::atomic<std::uint32_t>& operator[](std::size_t at) const { return words_[at]; }

private:
    using Word = std::atomic<std::uint32_t>;
    static_assert(Word::is_always_lock_free && sizeof(Word) == sizeof(std::uint32_t));

    std::size_t bytes_;
    Word* words_ = nullptr;
};

}  // namespace stoker::client
