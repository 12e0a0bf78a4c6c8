#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "common/base/unique_fd.h"

namespace stoker::s3 {

// A client's connection; a counter includes it while it is open. Move-only.
class ClientSocket {
public:
    using Counter = std::shared_ptr<std::atomic<std::size_t>>;

    ClientSocket(UniqueFd fd, Counter counter)
        : fd_(std::move(fd)),
          counter_(std::move(counter)) {
        counter_->fetch_add(1, std::memory_order_relaxed);
    }

    ClientSocket(ClientSocket&&) noexcept = default;
    ClientSocket& operator=(ClientSocket&&) = delete;
    ClientSocket(const ClientSocket&) = delete;
    ClientSocket& operator=(const ClientSocket&) = delete;

    ~ClientSocket() {
        if (counter_ != nullptr) {
            fd_.reset();
            counter_->fetch_sub(1, std::memory_order_relaxed);
        }
    }

    [[nodiscard]] int fd() const { return fd_.get(); }

private:
    UniqueFd fd_;
    Counter counter_;  // null after a move
};

}  // namespace stoker::s3
