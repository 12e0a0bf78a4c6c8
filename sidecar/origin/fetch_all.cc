#include "sidecar/origin/fetch_all.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "common/base/crc32c.h"

namespace stoker::sidecar {

namespace {

bool is_damaged(const Result<OriginBytes>& bytes) {
    return bytes && bytes->stored_crc32c && *bytes->stored_crc32c != crc32c(bytes->payload);
}

// Collects the results of several fetches. Shared by the callbacks, which may run after a stopped
// caller has returned. Any thread.
class Answers {
public:
    explicit Answers(std::size_t count)
        : results_(count, fail(ErrorCode::kCancelled, "stopped")),
          left_(count) {}

    void put(std::size_t i, Result<OriginBytes> bytes) {
        const std::lock_guard lock{mutex_};
        if (left_ > 0) {
            results_[i] = std::move(bytes);
            --left_;
            changed_.notify_one();
        }
    }

    // Waits for all results or a stop, after which put() drops results. Call it once.
    std::vector<Result<OriginBytes>> take(const std::stop_token& stop) {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, stop, [this] { return left_ == 0; });
        left_ = 0;
        return std::move(results_);
    }

private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::vector<Result<OriginBytes>> results_;
    std::size_t left_;  // results that have not arrived; 0 also after take()
};

std::vector<Result<OriginBytes>> fetch_once(
    Origin& origin, const std::vector<OriginFetch>& wanted, const std::stop_token& stop) {
    const auto answers = std::make_shared<Answers>(wanted.size());
    for (std::size_t i = 0; i < wanted.size() && !stop.stop_requested(); ++i) {
        origin.fetch(wanted[i], [answers, i](Result<OriginBytes> bytes) {
            answers->put(i, std::move(bytes));
        });
    }
    return answers->take(stop);
}

}  // namespace

std::vector<Result<OriginBytes>> fetch_all(
    Origin& origin, std::vector<OriginFetch> wanted, const std::stop_token& stop) {
    std::vector<Result<OriginBytes>> results = fetch_once(origin, wanted, stop);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        while (is_damaged(results[i])) {
            wanted[i].attempts = results[i]->attempts;
            results[i] = std::move(fetch_once(origin, {wanted[i]}, stop).front());
        }
    }
    return results;
}

Result<OriginBytes> fetch_one(Origin& origin, OriginFetch wanted, const std::stop_token& stop) {
    return std::move(fetch_all(origin, {std::move(wanted)}, stop).front());
}

}  // namespace stoker::sidecar
