#include "sidecar/origin/directory_listing.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>

#include "common/base/posix_error.h"
#include "sidecar/origin/open_beneath.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kProgressEvery = 1000;
constexpr std::size_t kDepthMax = 128;

struct DirCloser {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

using Directory = std::unique_ptr<DIR, DirCloser>;

class Walk {
public:
    Walk(int root, const std::function<void(std::uint64_t)>& progress, const std::stop_token& stop)
        : root_(root),
          progress_(progress),
          stop_(stop) {}

    Status directory(const std::string& path) {
        STOKER_TRY(UniqueFd fd, open(path, O_RDONLY | O_DIRECTORY));

        struct stat status {};

        ::fstat(fd.get(), &status);
        const auto self = std::pair{status.st_dev, status.st_ino};
        if (ancestors_.size() >= kDepthMax ||
            std::find(ancestors_.begin(), ancestors_.end(), self) != ancestors_.end()) {
            return fail(ErrorCode::kInvalidArgument, fmt::format("'{}': links in a circle", path));
        }
        Directory entries{::fdopendir(fd.get())};
        if (!entries) {
            return fail_errno("listing", path);
        }
        static_cast<void>(fd.release());  // closedir() closes it
        ancestors_.push_back(self);
        Status done = walk(*entries, path);
        ancestors_.pop_back();
        return done;
    }

    domain::Listing take() { return std::move(objects_); }

private:
    [[nodiscard]] Result<UniqueFd> open(const std::string& path, int flags) const {
        return open_beneath(root_, path.empty() ? "." : path, flags | O_CLOEXEC);
    }

    Status walk(DIR& entries, const std::string& path) {
        while (true) {
            if (stop_.stop_requested()) {
                return fail(ErrorCode::kCancelled, "stopped");
            }
            errno = 0;
            const dirent* found = ::readdir(&entries);  // NOLINT(concurrency-mt-unsafe): own stream
            if (found == nullptr) {
                return errno == 0 ? Status{} : fail_errno("listing", path);
            }
            const std::string name{static_cast<const char*>(found->d_name)};
            if (name != "." && name != "..") {
                STOKER_TRY_VOID(
                    entry(::dirfd(&entries), path.empty() ? name : path + "/" + name, name));
            }
        }
    }

    Status entry(int directory_fd, const std::string& path, const std::string& name) {
        struct stat status {};

        if (::fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            // ENOENT: deleted since readdir() returned it; treated as never listed.
            return errno == ENOENT ? Status{} : fail_errno("listing", path);
        }
        if (S_ISLNK(status.st_mode)) {
            STOKER_TRY(const UniqueFd target, open(path, O_PATH));
            ::fstat(target.get(), &status);
        }
        if (S_ISDIR(status.st_mode)) {
            return this->directory(path);
        }
        if (S_ISREG(status.st_mode)) {
            STOKER_TRY_VOID(
                objects_.add(path, static_cast<std::uint64_t>(status.st_size), file_etag(status)));
            if (progress_ && objects_.size() % kProgressEvery == 0) {
                progress_(objects_.size());
            }
        }
        return {};
    }

    int root_;
    const std::function<void(std::uint64_t)>& progress_;
    const std::stop_token& stop_;
    std::vector<std::pair<dev_t, ino_t>> ancestors_;
    domain::Listing objects_;
};

}  // namespace

std::string file_etag(const struct stat& status) {
    const std::int64_t mtime_ns =
        std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    return fmt::format("{}-{}-{}", status.st_size, mtime_ns, status.st_ino);
}

Result<domain::Listing> list_directory(
    int root, const std::function<void(std::uint64_t)>& progress, const std::stop_token& stop) {
    Walk walk{root, progress, stop};
    STOKER_TRY_VOID(walk.directory(""));
    auto objects = walk.take();
    if (progress) {
        progress(objects.size());
    }
    return objects;
}

}  // namespace stoker::sidecar
