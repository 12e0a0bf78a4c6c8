#include "sidecar/files/file_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/uio.h>

#include "common/log/log.h"
#include "common/runtime/named_thread.h"

namespace stoker::files {

namespace {

constexpr std::size_t kRequestBytesMax = (1U << 20U) + 65536;  // the kernel insists on max_write
constexpr std::size_t kRetireChecks = 64;
constexpr int kPollMs = 200;  // limits the delay of a stop

fuse_in_header head_of(std::span<const std::byte> request) {
    fuse_in_header head{};
    std::memcpy(&head, request.data(), sizeof head);
    return head;
}

}  // namespace

FileServer::FileServer(UniqueFd mount, Parts parts, std::size_t thread_count)
    : mount_(std::move(mount)),
      parts_(parts) {
    ::fcntl(mount_.get(), F_SETFL, O_RDWR | O_NONBLOCK);
    resends_ = write(resend_notice(), {});
    for (std::size_t at = 0; at < thread_count; ++at) {
        threads_.push_back(start_thread(
            fmt::format("files-{}", at), [this](const std::stop_token& stop) { run(stop); }));
    }
}

void FileServer::stop() {
    threads_.clear();
    Shown* shown = shown_.load(std::memory_order_acquire);
    if (resends_ && shown != nullptr) {
        shown->reads.stop();
    }
}

void FileServer::show(std::shared_ptr<attached::DatasetFiles> files) {
    auto shown = std::unique_ptr<Shown>(new Shown{
        files,
        FileTree{files->manifest()},
        SampleReads{
            parts_.dataset,
            files,
            parts_.origin,
            parts_.pool,
            parts_.clock,
            parts_.copied_bytes_max}});
    log::info(
        "showing files",
        {{"dataset", parts_.dataset.config().name},
         {"files", shown->tree.file_count()},
         {"hidden", shown->tree.hidden_count()}});
    std::vector<Request> waiting;
    {
        const std::scoped_lock lock{waiting_mutex_};
        shown_owner_ = std::move(shown);
        shown_.store(shown_owner_.get(), std::memory_order_release);
        waiting = std::move(waiting_);
        cancelled_.clear();
        is_refused_ = false;
    }
    for (const Request& request : waiting) {
        serve(request);
    }
}

void FileServer::refuse() {
    const std::scoped_lock lock{waiting_mutex_};
    is_refused_ = true;
    for (const Request& request : std::exchange(waiting_, {})) {
        write(error_reply(head_of(request).unique, EIO), {});
    }
}

void FileServer::tick() {
    if (Shown* shown = shown_.load(std::memory_order_acquire)) {
        shown->files->retire_unlinked(kRetireChecks);
        shown->reads.drop_old();
    }
}

void FileServer::run(const std::stop_token& stop) {
    std::vector<std::byte> buffer(kRequestBytesMax);
    while (!stop.stop_requested()) {
        if (serve_one(buffer)) {
            continue;
        }
        pollfd wait{mount_.get(), POLLIN, 0};
        if (::poll(&wait, 1, kPollMs) > 0 && (wait.revents & POLLERR) != 0) {
            log::info("unmounted", {{"dataset", parts_.dataset.config().name}});
            return;
        }
    }
}

bool FileServer::serve_one(std::span<std::byte> buffer) {
    const ssize_t bytes = ::read(mount_.get(), buffer.data(), buffer.size());
    if (bytes < 0) {
        return errno == EINTR || errno == ENOENT;  // ENOENT: the reader has given up meanwhile
    }
    serve(buffer.first(static_cast<std::size_t>(bytes)));
    return true;
}

void FileServer::serve(std::span<const std::byte> request) {
    const Shown* shown = shown_.load(std::memory_order_acquire);
    const ShownFiles files =
        shown != nullptr ? ShownFiles{&shown->tree, shown->files->modified()} : ShownFiles{};
    const Outcome outcome = handle(request, files, handles_.fetch_add(1) + 1);
    switch (outcome.step) {
        case Step::kNothing:
            return;
        case Step::kWait:
            wait(request);
            return;
        case Step::kCancel:
            cancel(outcome.unique);
            return;
        case Step::kRead:
            serve_read(outcome);
            return;
        case Step::kRelease:
            note_release(request, outcome.handle);
            write(outcome.reply, {});
            return;
        case Step::kReply:
            write(outcome.reply, {});
    }
}

void FileServer::serve_read(const Outcome& outcome) {
    read_handles_.lock()->insert(outcome.handle);
    shown_.load(std::memory_order_acquire)
        ->reads.read(
            outcome.object,
            outcome.offset,
            outcome.length,
            [this, unique = outcome.unique](auto bytes) {
                if (bytes) {
                    write(reply_header(unique, bytes->size()), *bytes);
                } else {
                    write(error_reply(unique, EIO), {});
                }
            });
}

// Counts a file that was closed without a READ as read: it came from the kernel's page cache.
void FileServer::note_release(std::span<const std::byte> request, std::uint64_t handle) {
    const Shown* shown = shown_.load(std::memory_order_acquire);
    if (read_handles_.lock()->erase(handle) > 0 || shown == nullptr) {
        return;
    }
    if (const auto node = shown->tree.find(head_of(request).nodeid); node && !node->is_folder) {
        for (std::uint64_t at = 0; at < node->object.sample_count; ++at) {
            const domain::SampleId id{node->object.first.value() + at};
            parts_.dataset.count_hit(id, shown->tree.manifest().size_bytes(id), true);
        }
    }
}

void FileServer::wait(std::span<const std::byte> request) {
    {
        const std::scoped_lock lock{waiting_mutex_};
        const std::uint64_t unique = head_of(request).unique;
        if (is_refused_ || cancelled_.erase(unique) > 0) {
            write(error_reply(unique, is_refused_ ? EIO : EINTR), {});
            return;
        }
        if (shown_.load(std::memory_order_acquire) == nullptr) {
            waiting_.emplace_back(request.begin(), request.end());
            return;
        }
    }
    serve(request);
}

// Remembers the cancellation if the request has not reached wait() yet: another thread has read it.
void FileServer::cancel(std::uint64_t unique) {
    const std::scoped_lock lock{waiting_mutex_};
    const auto found = std::ranges::find(
        waiting_, unique, [](const Request& request) { return head_of(request).unique; });
    if (found != waiting_.end()) {
        waiting_.erase(found);
        write(error_reply(unique, EINTR), {});
    } else if (!is_refused_ && shown_.load(std::memory_order_acquire) == nullptr) {
        cancelled_.insert(unique);
    }
}

// Writes a reply. False: the kernel refused it, as it does for a cancelled request and after an
// unmount. This is not an error.
bool FileServer::write(std::span<const std::byte> head, std::span<const std::byte> payload) const {
    const iovec parts[] = {
        {const_cast<std::byte*>(head.data()), head.size()},
        {const_cast<std::byte*>(payload.data()), payload.size()}};
    if (::writev(mount_.get(), parts, payload.empty() ? 1 : 2) >= 0) {
        return true;
    }
    if (errno == EFAULT) {
        fuse_out_header refused{};
        std::memcpy(&refused, head.data(), sizeof refused);
        write(error_reply(refused.unique, EIO), {});  // the segment's page cannot be read
    }
    return false;
}

}  // namespace stoker::files
