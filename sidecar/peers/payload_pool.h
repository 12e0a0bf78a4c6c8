#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace stoker::sidecar {

// Memory for received payloads. Buffers of 32 KiB to 4 MiB are kept for the next payload of about
// the same size, up to 16 MiB: the allocator returns such memory to the kernel, and new pages cost
// more than decrypting into them. Not zeroed. Thread-safe.
class PayloadPool : public std::enable_shared_from_this<PayloadPool> {
public:
    // Memory for a payload. May be released on any thread, even after the pool's owner is gone.
    std::shared_ptr<std::byte[]> take(std::size_t bytes);

    // Bytes of the buffers that are kept for later payloads.
    [[nodiscard]] std::size_t free_bytes() const {
        const std::lock_guard lock{mutex_};
        return free_bytes_;
    }

private:
    using Buffer = std::unique_ptr<std::byte[]>;

    void give_back(Buffer buffer, std::size_t capacity);

    mutable std::mutex mutex_;                           // guards all below
    std::map<std::size_t, std::vector<Buffer>> free_{};  // by capacity
    std::size_t free_bytes_ = 0;
};

}  // namespace stoker::sidecar
