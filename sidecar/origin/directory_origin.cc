#include "sidecar/origin/directory_origin.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include "common/base/posix_error.h"
#include "sidecar/origin/directory_listing.h"
#include "sidecar/origin/fetch_scheduler.h"
#include "sidecar/origin/open_beneath.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kThreadsMax = 16;

struct FileFetch {
    OriginFetch request;
    std::function<void(Result<OriginBytes>)> done;
};

// Checks that the file is the listed one. kConflict: it is not.
Status check_version(int file, const OriginFetch& wanted) {
    struct stat status {};

    if (::fstat(file, &status) != 0) {
        return fail_errno("reading", wanted.key);
    }
    if (file_etag(status) != wanted.etag ||
        static_cast<std::uint64_t>(status.st_size) != wanted.whole_bytes()) {
        return fail(
            ErrorCode::kConflict,
            fmt::format(
                "changed at the origin: {} now, {} when it was listed",
                file_etag(status),
                wanted.etag));
    }
    return {};
}

// Reads the file, or the wanted slice of it; checks before and after that it matches the listing.
Result<OriginBytes> read_file(int root, const OriginFetch& wanted, const Clock& clock) {
    const TimePoint started = clock.now();
    STOKER_TRY(
        const UniqueFd file, open_beneath(root, wanted.key, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    STOKER_TRY_VOID(check_version(file.get(), wanted));
    OriginBytes bytes;
    bytes.payload.resize(wanted.size_bytes);
    for (std::size_t at = 0; at < bytes.payload.size();) {
        const auto count = ::pread(
            file.get(),
            bytes.payload.data() + at,
            bytes.payload.size() - at,
            static_cast<off_t>(wanted.begin() + at));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return fail_errno("reading", wanted.key);
        }
        if (count == 0) {
            return fail(
                ErrorCode::kConflict,
                fmt::format("changed at the origin: ends after {} bytes", wanted.begin() + at));
        }
        if (at == 0) {
            bytes.first_byte = clock.now() - started;
        }
        at += static_cast<std::size_t>(count);
    }
    STOKER_TRY_VOID(check_version(file.get(), wanted));
    bytes.request_time = clock.now() - started;
    return bytes;
}

class DirectoryOrigin final : public Origin {
public:
    DirectoryOrigin(
        std::string path,
        UniqueFd root,
        const OriginOptions& options,
        const Clock& clock,
        std::uint64_t seed)
        : path_(std::move(path)),
          root_(std::move(root)),
          options_(options),
          clock_(&clock),
          scheduler_(
              {capacity().requests, options.bytes_in_flight_max, Bytes::unlimited(), mib(8)}),
          random_(seed) {
        const std::uint32_t count = std::clamp(options_.max_in_flight, 1U, kThreadsMax);
        for (std::uint32_t i = 0; i < count; ++i) {
            threads_.emplace_back([this] { work(); });
        }
    }

    ~DirectoryOrigin() override {
        {
            const std::lock_guard lock{mutex_};
            stopping_ = true;
        }
        wake_.notify_all();
        closing_.notify_all();
        for (std::thread& thread : threads_) {
            thread.join();
        }
        for (auto& [id, fetch] : fetches_) {
            fetch.done(fail(fetch_error(
                *this, fetch.request, {ErrorCode::kCancelled, "the origin is closing"}, 1)));
        }
    }

    DirectoryOrigin(const DirectoryOrigin&) = delete;
    DirectoryOrigin& operator=(const DirectoryOrigin&) = delete;

    [[nodiscard]] std::string describe() const override { return "file://" + path_; }

    [[nodiscard]] OriginCapacity capacity() const override {
        return capacity_for(std::min(options_.max_in_flight, OriginCapacity{}.fetches), options_);
    }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        auto objects = list_directory(root_.get(), progress, stop);
        if (!objects) {
            return fail(objects.error().prefixed("listing " + describe()));
        }
        return objects;
    }

    void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) override {
        {
            const std::lock_guard lock{mutex_};
            const FetchId id{next_id_++};
            scheduler_.add(id, request.size_bytes);
            fetches_.emplace(id, FileFetch{std::move(request), std::move(done)});
        }
        wake_.notify_one();
    }

private:
    void work() {
        pthread_setname_np(pthread_self(), "dir-origin");
        std::unique_lock lock{mutex_};
        while (!stopping_) {
            const auto next = scheduler_.next();
            if (!next) {
                ++idle_threads_;
                wake_.wait(lock);
                --idle_threads_;
                continue;
            }
            FileFetch fetch = std::move(fetches_.at(next->fetch));
            fetches_.erase(next->fetch);
            wake_another();
            lock.unlock();
            Result<OriginBytes> result = read_with_retries(fetch);
            count(result);
            fetch.done(std::move(result));
            lock.lock();
            scheduler_.part_ended(fetch.request.size_bytes);
            scheduler_.remove(next->fetch);
        }
    }

    // Call with mutex_ held. The caller is busy, and more fetches wait: the freed bytes of one may
    // allow several. A thread that ends its fetch looks for the next one by itself.
    void wake_another() {
        if (idle_threads_ > 0 && !fetches_.empty()) {
            wake_.notify_one();
        }
    }

    Result<OriginBytes> read_with_retries(const FileFetch& fetch) {
        if (Bytes{fetch.request.size_bytes} > options_.object_bytes_max) {
            return fail(fetch_error(
                *this, fetch.request, too_large(fetch.request.size_bytes, options_), 1));
        }
        const std::uint32_t before = fetch.request.attempts;
        if (const Error damaged{ErrorCode::kUnavailable, ""};
            before > 0 && !wait_before_retry(before, damaged)) {
            const char* message = "the bytes do not match the checksum stored at the origin";
            return fail(
                fetch_error(*this, fetch.request, {ErrorCode::kCorruption, message}, before));
        }
        for (std::uint32_t attempt = before + 1;; ++attempt) {
            Result<OriginBytes> result = read_once(fetch.request);
            if (result) {
                result->requests = attempt - before;
                result->attempts = attempt;
                return result;
            }
            if (!wait_before_retry(attempt, result.error())) {
                return fail(fetch_error(*this, fetch.request, result.error(), attempt));
            }
        }
    }

    Result<OriginBytes> read_once(const OriginFetch& wanted) {
        try {
            return read_file(root_.get(), wanted, *clock_);
        } catch (const std::bad_alloc&) {
            return fail(ErrorCode::kResourceExhausted, "not enough memory for the object");
        }
    }

    // Waits before the next attempt. False: no retry, or the origin is closing.
    bool wait_before_retry(std::uint32_t attempt, const Error& error) {
        std::unique_lock lock{mutex_};
        const auto delay =
            next_delay(options_.retry, {attempt, is_retryable(error.code), std::nullopt}, random_);
        if (!delay || stopping_) {
            return false;
        }
        if (options_.metrics != nullptr) {
            options_.metrics->retries.add();
        }
        return !closing_.wait_for(lock, *delay, [this] { return stopping_; });
    }

    void count(const Result<OriginBytes>& result) {
        if (options_.metrics == nullptr) {
            return;
        }
        const std::string outcome = result ? "read" : std::string{to_string(result.error().code)};
        options_.metrics->requests.with({"get", outcome})->add();
        if (result) {
            options_.metrics->received_bytes.add(static_cast<double>(result->payload.size()));
        } else {
            options_.metrics->failed_objects.with({outcome})->add();
        }
    }

    const std::string path_;
    const UniqueFd root_;
    const OriginOptions options_;
    const Clock* clock_;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable closing_;
    bool stopping_ = false;  // guarded by mutex_, like the members below
    FetchScheduler scheduler_;
    Prng random_;
    std::uint64_t next_id_ = 0;
    std::unordered_map<FetchId, FileFetch> fetches_;  // waiting fetches
    std::size_t idle_threads_ = 0;

    std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Origin>> make_directory_origin(
    const std::string& path, const OriginOptions& options, const Clock& clock, std::uint64_t seed) {
    UniqueFd root{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!root.valid()) {
        return fail_errno("opening", "file://" + path);
    }
    return std::unique_ptr<Origin>{
        std::make_unique<DirectoryOrigin>(path, std::move(root), options, clock, seed)};
}

}  // namespace stoker::sidecar
