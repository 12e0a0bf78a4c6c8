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

// Serves one dataset's files at the descriptor of its FUSE mount, on its own threads. Before
// show(), requests for names and bytes wait; requests for the root's attributes do not.
class FileServer {
public:
    struct Parts {
        attached::CachedDataset& dataset;
        sidecar::Origin& origin;
        attached::FetchPool& pool;
        const Clock& clock;
        std::uint64_t copied_bytes_max;  // for SampleReads
    };

    // `mount`: a FUSE connection whose INIT was answered. Starts the threads, and asks the kernel
    // for requests that a former process has left unanswered. The parts must outlive this object.
    FileServer(UniqueFd mount, Parts parts, std::size_t thread_count);
    FileServer(const FileServer&) = delete;
    FileServer& operator=(const FileServer&) = delete;
    // Call stop() first, and end the thread pool before this object is destroyed: until then, the
    // pool's threads reply through this object.
    ~FileServer() = default;

    // Ends the threads. If the kernel can send requests again to the next process, requests that
    // the pool has not started stay unanswered.
    void stop();

    // Shows these files from now on. Call it once.
    void show(std::shared_ptr<attached::DatasetFiles> files);

    // Call if the files cannot be shown: until show(), requests that need them fail with EIO.
    void refuse();

    // Closes segments that the sidecar has removed, and drops samples that nobody reads any more.
    // Call it about once a second, or more often.
    void tick();

private:
    // State that show() creates.
    struct Shown {
        std::shared_ptr<attached::DatasetFiles> files;
        FileTree tree;
        SampleReads reads;
    };

    using Request = std::vector<std::byte>;

    void run(const std::stop_token& stop);
    // Serves one request. False: no request is waiting.
    bool serve_one(std::span<std::byte> buffer);
    void serve(std::span<const std::byte> request);
    void serve_read(const Outcome& outcome);
    void note_release(std::span<const std::byte> request, std::uint64_t handle);
    void wait(std::span<const std::byte> request);
    void cancel(std::uint64_t unique);
    // Writes a reply. False: the kernel refused it.
    bool write(std::span<const std::byte> head, std::span<const std::byte> payload) const;

    UniqueFd mount_;
    Parts parts_;
    std::unique_ptr<Shown> shown_owner_;
    std::atomic<Shown*> shown_{nullptr};
    std::atomic<std::uint64_t> handles_{0};
    Guarded<std::unordered_set<std::uint64_t>> read_handles_;  // open files that got a READ
    bool resends_ = false;                                     // the kernel supports resending
    std::mutex waiting_mutex_;  // guards the members below, and show() against wait()
    std::vector<Request> waiting_;
    std::unordered_set<std::uint64_t> cancelled_;  // before they reached waiting_
    bool is_refused_ = false;
    std::vector<std::jthread> threads_;
};

}  // namespace stoker::files
