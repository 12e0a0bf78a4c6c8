#include "sidecar/pack/tar_origin.h"

#include <cerrno>
#include <charconv>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/posix_error.h"
#include "common/base/unique_fd.h"
#include "common/domain/tar_format.h"
#include "sidecar/origin/directory_listing.h"

namespace stoker::sidecar {

namespace {

using domain::TarMember;

struct TarFile {
    std::string path;
    UniqueFd fd;
    std::uint64_t size_bytes = 0;
    std::string etag;  // of the whole file
};

Status read_at(const TarFile& file, std::uint64_t offset, std::span<char> into) {
    while (!into.empty()) {
        const auto count =
            ::pread(file.fd.get(), into.data(), into.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return fail_errno("reading", file.path);
        }
        if (count == 0) {
            return fail(ErrorCode::kCorruption, fmt::format("{}: ends too early", file.path));
        }
        into = into.subspan(static_cast<std::size_t>(count));
        offset += static_cast<std::uint64_t>(count);
    }
    return {};
}

// Adds the files in one tar file, which is the `number`-th.
class TarScan {
public:
    TarScan(const TarFile& file, std::size_t number, domain::Listing& objects)
        : file_(file),
          number_(number),
          objects_(objects) {}

    Status run() {
        domain::TarWalk walk{file_.size_bytes};
        std::string bytes;
        while (const auto wanted = walk.next()) {
            bytes.resize(wanted->length);
            STOKER_TRY_VOID(read_at(file_, wanted->offset, bytes));
            const auto member = walk.take(std::as_bytes(std::span{bytes}));
            if (!member) {
                return fail(member.error().prefixed(file_.path));
            }
            if (*member) {
                STOKER_TRY_VOID(take(**member));
            }
        }
        return {};
    }

private:
    Status take(const TarMember& member) {
        if (member.kind == TarMember::Kind::kLink || member.kind == TarMember::Kind::kSparse) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}' of {} is a link or a sparse file, which cannot be packed",
                    member.name,
                    file_.path));
        }
        if (member.kind != TarMember::Kind::kFile) {
            return {};
        }
        const std::string_view name{member.name};
        return objects_.add(
            name.starts_with("./") ? name.substr(2) : name,
            member.size_bytes,
            fmt::format("{}:{}:{}", number_, member.data, file_.etag));
    }

    const TarFile& file_;
    const std::size_t number_;
    domain::Listing& objects_;
};

class TarOrigin final : public Origin {
public:
    explicit TarOrigin(std::vector<TarFile> files)
        : files_(std::move(files)) {}

    [[nodiscard]] std::string describe() const override { return files_.front().path; }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        domain::Listing objects;
        for (std::size_t i = 0; i < files_.size() && !stop.stop_requested(); ++i) {
            STOKER_TRY_VOID(TarScan(files_[i], i, objects).run());
            if (progress) {
                progress(objects.size());
            }
        }
        if (stop.stop_requested()) {
            return fail(ErrorCode::kCancelled, "stopped");
        }
        return objects;
    }

    void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) override {
        done(read(request));
    }

private:
    [[nodiscard]] Result<OriginBytes> read(const OriginFetch& request) const {
        std::size_t number = 0;
        std::uint64_t offset = 0;
        const char* end = request.etag.data() + request.etag.size();
        const auto first = std::from_chars(request.etag.data(), end, number);
        if (first.ptr == end || number >= files_.size()) {
            return fail(ErrorCode::kInvalidArgument, "the file is not in the listing");
        }
        std::from_chars(first.ptr + 1, end, offset);
        OriginBytes bytes;
        bytes.payload.resize(request.size_bytes);
        const Status done = read_at(
            files_[number],
            offset,
            {reinterpret_cast<char*>(bytes.payload.data()), bytes.payload.size()});
        STOKER_TRY_VOID(check_unchanged(files_[number]));
        STOKER_TRY_VOID(done);
        return bytes;
    }

    // Checks that the open file is as it was when it was opened.
    static Status check_unchanged(const TarFile& file) {
        struct stat status {};

        if (::fstat(file.fd.get(), &status) != 0) {
            return fail_errno("looking at", file.path);
        }
        if (file_etag(status) != file.etag) {
            return fail(
                ErrorCode::kConflict, fmt::format("{} has changed while it is read", file.path));
        }
        return {};
    }

    const std::vector<TarFile> files_;
};

}  // namespace

Result<std::unique_ptr<Origin>> make_tar_origin(const std::vector<std::string>& paths) {
    std::vector<TarFile> files;
    for (const std::string& path : paths) {
        UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};

        struct stat status {};

        if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
            return fail_errno("opening", path);
        }
        const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
        files.push_back({path, std::move(fd), size_bytes, file_etag(status)});
    }
    if (files.empty()) {
        return fail(ErrorCode::kInvalidArgument, "no tar file was given");
    }
    return std::unique_ptr<Origin>{std::make_unique<TarOrigin>(std::move(files))};
}

}  // namespace stoker::sidecar
