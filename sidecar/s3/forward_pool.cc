#include "sidecar/s3/forward_pool.h"

#include <utility>

#include <fmt/core.h>
#include <sys/socket.h>

#include "common/runtime/named_thread.h"
#include "sidecar/s3/forward_call.h"

namespace stoker::s3 {

ForwardPool::ForwardPool(
    const Places& places, const Clock& clock, std::size_t threads_max, Duration patience)
    : places_(places),
      clock_(clock),
      threads_max_(threads_max),
      patience_(patience) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

ForwardPool::~ForwardPool() {
    std::deque<Job> waiting;
    {
        const std::scoped_lock lock{mutex_};
        is_stopping_ = true;
        waiting.swap(jobs_);
        for (const int socket : running_) {
            ::shutdown(socket, SHUT_RDWR);
        }
    }
    wake_.notify_all();
    threads_.clear();
}

void ForwardPool::post(Job job) {
    const std::scoped_lock lock{mutex_};
    if (is_stopping_) {
        return;
    }
    jobs_.push_back(std::move(job));
    if (idle_ < jobs_.size() && threads_.size() < threads_max_) {
        threads_.push_back(start_thread(
            fmt::format("s3-forward-{}", threads_.size()), [this](const auto&) { run(); }));
    }
    wake_.notify_one();
}

void ForwardPool::run() {
    const CurlEasy easy{curl_easy_init()};
    while (true) {
        std::unique_lock lock{mutex_};
        ++idle_;
        wake_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
        --idle_;
        if (is_stopping_) {
            return;
        }
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        running_.insert(job.socket.fd());
        lock.unlock();
        serve(easy.get(), std::move(job));
    }
}

void ForwardPool::serve(void* easy, Job job) {
    const sidecar::S3Access& origin = places_.origin_of(job.call.bucket, job.call.key);
    const S3Call asked = bound_call(std::move(job.call), job.bound);
    ForwardCall call{
        job.socket.fd(),
        std::move(job.buffered),
        asked,
        origin,
        std::move(job.request_id),
        job.bound,
        patience_,
        is_stopping_};
    call.run(static_cast<CURL*>(easy), clock_.wall_now());
    {
        const std::scoped_lock lock{mutex_};
        running_.erase(job.socket.fd());
    }
    attached::CachedDataset* dataset = places_.dataset_of(asked.bucket, asked.key);
    if (call.has_changed() && dataset != nullptr) {
        dataset->note_written(asked.key);
    }
    if (call.can_go_on()) {
        job.give_back(std::move(job.socket), call.take_rest());
    }
}

}  // namespace stoker::s3
