#include "sidecar/peers/payload_pool.h"

#include <bit>
#include <utility>

namespace stoker::sidecar {

namespace {

constexpr std::size_t kKeptMin = std::size_t{32} << 10U;
constexpr std::size_t kKeptMax = std::size_t{4} << 20U;
constexpr std::size_t kFreeBytesMax = std::size_t{16} << 20U;

}  // namespace

std::shared_ptr<std::byte[]> PayloadPool::take(std::size_t bytes) {
    if (bytes < kKeptMin || bytes > kKeptMax) {
        return std::make_shared_for_overwrite<std::byte[]>(bytes);
    }
    const std::size_t capacity = std::bit_ceil(bytes);
    Buffer buffer;
    {
        const std::lock_guard lock{mutex_};
        std::vector<Buffer>& same = free_[capacity];
        if (!same.empty()) {
            buffer = std::move(same.back());
            same.pop_back();
            free_bytes_ -= capacity;
        }
    }
    if (buffer == nullptr) {
        buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
    }
    return {buffer.release(), [pool = shared_from_this(), capacity](std::byte* released) {
                pool->give_back(Buffer{released}, capacity);
            }};
}

// Keeps or frees the buffer; frees it after the lock is released.
void PayloadPool::give_back(Buffer buffer, std::size_t capacity) {
    const std::lock_guard lock{mutex_};
    if (free_bytes_ + capacity <= kFreeBytesMax) {
        free_[capacity].push_back(std::move(buffer));
        free_bytes_ += capacity;
    }
}

}  // namespace stoker::sidecar
