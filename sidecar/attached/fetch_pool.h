#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/src/core/sidecar_client.h"
#include "common/base/clock.h"
#include "sidecar/attached/cached_dataset.h"

namespace stoker::attached {

// Gets samples that an event thread cannot answer at once: first reads of stored samples, which may
// wait for the disk, and misses, which go through the sidecar. Each thread has its own connections,
// because a sidecar keeps a fetched sample until the connection's next fetch. Thread-safe.
class FetchPool {
public:
    struct Answer {
        std::optional<DatasetFiles::Found> found;  // nullopt: ask the origin
        std::string_view source = "hit";           // or "fetched", or "origin" (not the sidecar)
    };

    // Called once for each request, on a thread of the pool.
    using OnDone = std::function<void(Answer)>;

    static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

    // `memory_bytes_max`: memory of the requests that run at the same time. A request that needs
    // more runs alone.
    FetchPool(
        const std::string& socket_path,
        const Clock& clock,
        std::size_t thread_count,
        std::uint64_t memory_bytes_max = kUnlimited);
    FetchPool(const FetchPool&) = delete;
    FetchPool& operator=(const FetchPool&) = delete;
    // Finishes the requests that are running; answers the waiting ones with nullopt.
    ~FetchPool();

    // `range_bytes`: bytes of the sample that are sent now; the client may soon ask for the rest.
    // `memory_bytes`: what the answer, and its use in `on_done`, may allocate.
    // The queue has no limit of its own: each client requests a few parts at most.
    void get(
        CachedDataset& dataset,
        std::shared_ptr<DatasetFiles> files,
        domain::SampleId id,
        std::uint64_t range_bytes,
        OnDone on_done,
        std::uint64_t memory_bytes = 0);

private:
    struct Job {
        CachedDataset* dataset;
        std::shared_ptr<DatasetFiles> files;
        domain::SampleId id;
        std::uint64_t range_bytes;
        OnDone on_done;
        std::uint64_t memory_bytes;
    };

    // A thread's connections, by the dataset's index.
    using Lanes = std::vector<std::optional<client::SidecarClient>>;

    void run();
    // Whether the first waiting request may start.
    [[nodiscard]] bool is_ready() const;
    void finish(Lanes& lanes, Job&& job);
    Answer answer(Lanes& lanes, const Job& job);
    [[nodiscard]] static bool may_ask(const Job& job);
    std::optional<DatasetFiles::Found> fetch(Lanes& lanes, const Job& job);
    client::SidecarClient* lane(Lanes& lanes, const Job& job);

    const std::string& socket_path_;
    const Clock& clock_;
    std::uint64_t memory_bytes_max_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    std::uint64_t memory_bytes_ = 0;  // memory of the running requests
    bool is_stopping_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace stoker::attached
