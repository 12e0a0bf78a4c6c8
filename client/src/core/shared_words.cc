#include "client/src/core/shared_words.h"

#include <cerrno>
#include <new>
#include <utility>

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/src/core/mapped_file.h"

namespace stoker::client {

namespace {

void* map(int file, int flags, std::size_t bytes) {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);
}

}  // namespace

SharedWords::SharedWords(void* memory, std::size_t bytes, std::uint64_t offset_bytes)
    : memory_(memory),
      bytes_(bytes),
      words_(reinterpret_cast<Word*>(static_cast<std::byte*>(memory) + offset_bytes)) {}

SharedWords::SharedWords(std::size_t count) {
    if (count == 0) {
        return;
    }
    void* const memory = map(-1, MAP_ANONYMOUS, count * sizeof(Word));
    if (memory == MAP_FAILED) {
        throw std::bad_alloc{};
    }
    *this = SharedWords{memory, count * sizeof(Word), 0};
}

Result<SharedWords> SharedWords::of_file(int file, std::uint64_t offset_bytes, std::size_t count) {
    const std::size_t bytes = offset_bytes + count * sizeof(Word);

    struct stat status {};

    if (::fstat(file, &status) != 0) {
        return fail(system_error(errno, "sharing checks"));
    }
    if (static_cast<std::uint64_t>(status.st_size) < bytes || offset_bytes % sizeof(Word) != 0) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "sharing checks: the file has no {} words from {} on", count, offset_bytes));
    }
    if (count == 0) {
        return SharedWords{0};
    }
    void* const memory = map(file, 0, bytes);
    if (memory == MAP_FAILED) {
        return fail(system_error(errno, "sharing checks"));
    }
    return SharedWords{memory, bytes, offset_bytes};
}

SharedWords::SharedWords(SharedWords&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      words_(std::exchange(other.words_, nullptr)) {}

SharedWords& SharedWords::operator=(SharedWords&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(words_, other.words_);
    return *this;
}

SharedWords::~SharedWords() {
    if (memory_ != nullptr) {
        ::munmap(memory_, bytes_);
    }
}

}  // namespace stoker::client
