#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/unique_fd.h"
#include "sidecar/attached/cached_dataset.h"
#include "sidecar/attached/fetch_pool.h"
#include "sidecar/files/file_protocol.h"
#include "sidecar/files/file_tree.h"
#include "sidecar/files/sample_reads.h"
#include "sidecar/origin/origin.h"

namespace stoker::files {

// Serves one dataset at the descriptor of its mount, on threads of its own. Until show() requests
// for names and bytes wait; the root's own attributes do not.
class FileServer {
public:
    struct Parts {
        attached::CachedDataset& dataset;
        sidecar::Origin& origin;
        attached::FetchPool& pool;
        const Clock& clock;
        std::uint64_t copied_bytes_max;  // as SampleReads
    };

    // `mount`: of a connection whose INIT was answered. Starts the threads, and asks the kernel for
    // the requests that a former process has left. The parts must outlive this object.
    FileServer(UniqueFd mount, Parts parts, std::size_t thread_count);
    FileServer(const FileServer&) = delete;
    FileServer& operator=(const FileServer&) = delete;
    // Call stop() first, then end the thread pool: until then its threads reply through this
    // object.
    ~FileServer() = default;

    // Ends the threads. Where the kernel sends requests again to the next process, those that the
    // pool has not begun stay unanswered.
    void stop();

    // From now on the mount shows these files. Call it once.
    void show(std::shared_ptr<attached::DatasetFiles> files);

    // The files cannot be shown: until show() requests that need them fail with EIO.
    void refuse();

    // Closes segments that the sidecar has removed, and drops samples that nobody reads any more.
    // Call it about once a second, or more often.
    void tick();

private:
    // Made by show().
    struct Shown {
        std::shared_ptr<attached::DatasetFiles> files;
        FileTree tree;
        SampleReads reads;
    };

    using Request = std::vector<std::byte>;

    void run(const std::stop_token& stop);
    // False: there is no request now.
    bool serve_one(std::span<std::byte> buffer);
    void serve(std::span<const std::byte> request);
    void serve_read(const Outcome& outcome);
    void note_release(std::span<const std::byte> request, std::uint64_t handle);
    void wait(std::span<const std::byte> request);
    void cancel(std::uint64_t unique);
    // False: the kernel refuses it.
    bool write(std::span<const std::byte> head, std::span<const std::byte> payload) const;

    UniqueFd mount_;
    Parts parts_;
    std::unique_ptr<Shown> shown_owner_;
    std::atomic<Shown*> shown_{nullptr};
    std::atomic<std::uint64_t> handles_{0};
    Guarded<std::unordered_set<std::uint64_t>> read_handles_;  // open files that a READ came for
    bool resends_ = false;                                     // the kernel knows the notice
    std::mutex waiting_mutex_;  // guards what follows, and that none is added after show()
    std::vector<Request> waiting_;
    std::unordered_set<std::uint64_t> cancelled_;  // before they came to waiting_
    bool is_refused_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace stoker::files
