#include "tests/support/fake_origin.h"

#include <utility>

#include <fmt/core.h>

#include "common/base/crc32c.h"

namespace stoker::test {

using sidecar::OriginBytes;
using sidecar::OriginFetch;

FakeOrigin::FakeOrigin(const Dataset& dataset)
    : dataset_(dataset) {
    for (std::uint64_t id = 0; id < dataset.manifest().sample_count(); ++id) {
        ids_.emplace(dataset.manifest().sample(domain::SampleId{id}).key, id);
    }
    thread_ = std::thread{[this] { run(); }};
}

FakeOrigin::~FakeOrigin() {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
    for (const Job& job : jobs_) {
        job.done(fail(ErrorCode::kCancelled, "the origin shuts down"));
    }
}

Result<domain::Listing> FakeOrigin::list(
    const std::function<void(std::uint64_t)>& progress, std::stop_token /*stop*/) {
    ++listings_;
    const std::lock_guard lock{mutex_};
    if (failure_) {
        return fail(*failure_);
    }
    if (objects_) {
        return domain::Listing::of(*objects_);
    }
    domain::Listing objects;
    for (const auto& [key, id] : ids_) {
        const auto info = dataset_.manifest().sample(domain::SampleId{id});
        STOKER_TRY_VOID(objects.add(key, info.size_bytes, info.etag));
    }
    progress(objects.size());
    return objects;
}

void FakeOrigin::fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) {
    ++fetches_;
    const auto due = std::chrono::steady_clock::now() + Duration{latency_ns_.load()};
    {
        const std::lock_guard lock{mutex_};
        ++fetches_by_key_[request.key];
        jobs_.push_back({std::move(request), std::move(done), due});
    }
    wake_.notify_one();
}

void FakeOrigin::fetch_together(std::vector<sidecar::OriginRequest> requests) {
    std::uint32_t failed_requests = 1;
    for (sidecar::OriginRequest& request : requests) {
        fetch(
            std::move(request.fetch),
            [done = std::move(request.done), failed_requests](Result<OriginBytes> bytes) {
                done({std::move(bytes), failed_requests});
            });
        failed_requests = shares_ ? 0 : 1;
    }
}

void FakeOrigin::fail_with(std::optional<Error> error) {
    const std::lock_guard lock{mutex_};
    failure_ = std::move(error);
}

void FakeOrigin::fail_key(const std::string& key, const Error& error) {
    const std::lock_guard lock{mutex_};
    bad_keys_[key] = error;
}

void FakeOrigin::damage(const std::string& key, std::uint32_t times) {
    const std::lock_guard lock{mutex_};
    damaged_[key] = times;
}

void FakeOrigin::hold() {
    const std::lock_guard lock{mutex_};
    held_ = true;
}

void FakeOrigin::release() {
    {
        const std::lock_guard lock{mutex_};
        held_ = false;
    }
    wake_.notify_all();
}

void FakeOrigin::list_instead(std::vector<domain::ListedObject> objects) {
    const std::lock_guard lock{mutex_};
    objects_ = std::move(objects);
}

std::uint64_t FakeOrigin::fetches_of(domain::SampleId sample) const {
    const std::lock_guard lock{mutex_};
    const auto found = fetches_by_key_.find(std::string{dataset_.manifest().sample(sample).key});
    return found == fetches_by_key_.end() ? 0 : found->second;
}

void FakeOrigin::forget_counts() {
    const std::lock_guard lock{mutex_};
    fetches_ = 0;
    listings_ = 0;
    fetches_by_key_.clear();
}

void FakeOrigin::run() {
    for (;;) {
        Job job;
        {
            std::unique_lock lock{mutex_};
            wake_.wait(lock, [this] { return stopping_ || (!held_ && !jobs_.empty()); });
            if (stopping_) {
                return;
            }
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        std::this_thread::sleep_until(job.due);
        std::this_thread::sleep_for(Duration{delay_ns_.load()});
        job.done(answer(job.request));
    }
}

Result<OriginBytes> FakeOrigin::answer(const OriginFetch& request) {
    const std::lock_guard lock{mutex_};
    if (failure_) {
        return fail(*failure_);
    }
    if (const auto bad = bad_keys_.find(request.key); bad != bad_keys_.end()) {
        return fail(bad->second);
    }
    const auto id = ids_.find(request.key);
    if (id == ids_.end()) {
        return fail(ErrorCode::kNotFound, fmt::format("'{}' does not exist", request.key));
    }
    OriginBytes bytes{dataset_.payload(domain::SampleId{id->second}), {}};
    bytes.attempts = request.attempts + 1;
    if (const auto bad = damaged_.find(request.key); bad != damaged_.end()) {
        if (request.attempts >= kAttemptsMax) {
            return fail(ErrorCode::kCorruption, request.key + " does not match its checksum");
        }
        const bool wrong = bad->second > 0;
        bad->second -= wrong ? 1 : 0;
        bytes.stored_crc32c = crc32c(bytes.payload) + (wrong ? 1 : 0);
    }
    if (request.slice) {
        const auto begin = bytes.payload.begin() + static_cast<std::ptrdiff_t>(request.begin());
        const auto end = begin + static_cast<std::ptrdiff_t>(request.size_bytes);
        bytes.payload = std::vector<std::byte>(begin, end);
    }
    return bytes;
}

}  // namespace stoker::test
