#include "sidecar/pack/tar_origin.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/posix_error.h"
#include "common/base/unique_fd.h"
#include "sidecar/origin/directory_listing.h"

namespace stoker::sidecar {

namespace {

using domain::ListedObject;

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kExtraBytesMax = std::uint64_t{1} << 20U;  // of a long name or pax header

using Block = std::array<char, kBlock>;

struct TarFile {
    std::string path;
    UniqueFd fd;
    std::uint64_t size_bytes = 0;
    std::string etag;  // of the whole file
};

// Values of pax and GNU headers, which replace those in the next entry's own header.
struct Overrides {
    std::optional<std::string> name;
    std::optional<std::uint64_t> size_bytes;
    bool is_sparse = false;
};

struct Entry {
    char type = '0';
    std::string name;
    std::uint64_t size_bytes = 0;
    bool is_sparse = false;
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

// A field of text, up to its first NUL.
std::string text_field(const Block& block, std::size_t at, std::size_t length) {
    return {block.data() + at, ::strnlen(block.data() + at, length)};
}

// Octal digits, or with the high bit set a big-endian number (GNU). nullopt: neither.
std::optional<std::uint64_t> number_field(const Block& block, std::size_t at, std::size_t length) {
    std::uint64_t value = 0;
    if ((static_cast<unsigned char>(block[at]) & 0x80U) != 0) {
        for (std::size_t i = at + length - 8; i < at + length; ++i) {
            value = value << 8U | static_cast<unsigned char>(block[i]);
        }
        return value;
    }
    std::string digits = text_field(block, at, length);
    digits.erase(0, digits.find_first_not_of(' '));
    digits.erase(std::min(digits.find(' '), digits.size()));
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    const bool is_whole = read.ec == std::errc{} && read.ptr == digits.data() + digits.size();
    return is_whole ? std::optional{value} : std::nullopt;
}

bool checksum_fits(const Block& block) {
    constexpr std::size_t kAt = 148;
    constexpr std::size_t kLength = 8;
    std::uint64_t sum = kLength * ' ';
    for (std::size_t i = 0; i < kBlock; ++i) {
        sum += i >= kAt && i < kAt + kLength ? 0 : static_cast<unsigned char>(block[i]);
    }
    return number_field(block, kAt, kLength) == sum;
}

bool is_zero(const Block& block) {
    return std::ranges::all_of(block, [](char byte) { return byte == 0; });
}

// nullopt: not a header.
std::optional<Entry> read_entry(const Block& block) {
    constexpr std::size_t kSizeAt = 124;
    constexpr std::size_t kTypeAt = 156;
    constexpr std::size_t kMagicAt = 257;
    constexpr std::size_t kPrefixAt = 345;
    const auto size_bytes = number_field(block, kSizeAt, 12);
    if (!checksum_fits(block) || !size_bytes) {
        return std::nullopt;
    }
    Entry entry{block[kTypeAt], text_field(block, 0, 100), *size_bytes};
    // GNU's own format has other fields in place of the prefix.
    const bool is_posix = std::memcmp(block.data() + kMagicAt, "ustar\0", 6) == 0;
    if (const std::string prefix = text_field(block, kPrefixAt, 155); is_posix && !prefix.empty()) {
        entry.name = prefix + "/" + entry.name;
    }
    return entry;
}

// Records "LENGTH KEY=VALUE\n" of a pax header; only path, size and GNU's records of a sparse file
// matter. False: malformed.
bool read_pax(std::string_view text, Overrides& next) {
    while (!text.empty()) {
        std::size_t length = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), length);
        const auto digits = static_cast<std::size_t>(read.ptr - text.data());
        if (read.ec != std::errc{} || length > text.size() || length < digits + 2 ||
            text[digits] != ' ') {
            return false;
        }
        const std::string_view record = text.substr(digits + 1, length - digits - 2);
        if (record.starts_with("path=")) {
            next.name = record.substr(5);
        } else if (record.starts_with("size=")) {
            std::uint64_t size = 0;
            std::from_chars(record.data() + 5, record.data() + record.size(), size);
            next.size_bytes = size;
        } else if (record.starts_with("GNU.sparse.")) {
            next.is_sparse = true;
        }
        text.remove_prefix(length);
    }
    return true;
}

class TarScan {
public:
    TarScan(const TarFile& file, std::size_t number, domain::Listing& objects)
        : file_(file),
          number_(number),
          objects_(objects) {}

    Status run() {
        Block block{};
        while (at_ + kBlock <= file_.size_bytes) {
            STOKER_TRY_VOID(read_at(file_, at_, block));
            if (is_zero(block)) {
                return {};
            }
            auto entry = read_entry(block);
            if (!entry) {
                return corrupt("no tar header; a compressed file must be unpacked first");
            }
            at_ += kBlock;
            STOKER_TRY_VOID(take(*std::move(entry)));
        }
        return at_ == file_.size_bytes ? Status{} : corrupt("ends inside an entry");
    }

private:
    tl::unexpected<Error> corrupt(std::string_view what) const {
        return fail(
            ErrorCode::kCorruption, fmt::format("{} at byte {}: {}", file_.path, at_, what));
    }

    Status take(Entry entry) {
        const bool is_extra = entry.type == 'L' || entry.type == 'x' || entry.type == 'g';
        if (!is_extra) {
            entry.name = std::exchange(next_.name, {}).value_or(entry.name);
            entry.size_bytes = std::exchange(next_.size_bytes, {}).value_or(entry.size_bytes);
            entry.is_sparse = std::exchange(next_.is_sparse, false) || entry.type == 'S';
        }
        if (entry.size_bytes > file_.size_bytes - at_) {
            return corrupt("ends inside an entry");
        }
        if (is_extra) {
            STOKER_TRY_VOID(take_extra(entry));
        } else {
            STOKER_TRY_VOID(take_file(std::move(entry)));
        }
        at_ += (entry.size_bytes + kBlock - 1) / kBlock * kBlock;
        return {};
    }

    Status take_extra(const Entry& entry) {
        if (entry.size_bytes > kExtraBytesMax) {
            return corrupt("a name of over 1 MiB");
        }
        std::string text(entry.size_bytes, '\0');
        STOKER_TRY_VOID(read_at(file_, at_, text));
        if (entry.type == 'L') {
            next_.name = std::string{text.c_str()};
        } else if (entry.type == 'x' && !read_pax(text, next_)) {
            return corrupt("a damaged pax header");
        }
        return {};
    }

    Status take_file(Entry entry) {
        if (entry.type == '1' || entry.type == '2' || entry.is_sparse) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}' of {} is a link or a sparse file, which cannot be packed",
                    entry.name,
                    file_.path));
        }
        if (entry.type != '0' && entry.type != '\0' && entry.type != '7') {
            return {};
        }
        if (entry.name.starts_with("./")) {
            entry.name.erase(0, 2);
        }
        return objects_.add(
            entry.name, entry.size_bytes, fmt::format("{}:{}:{}", number_, at_, file_.etag));
    }

    const TarFile& file_;
    const std::size_t number_;
    domain::Listing& objects_;
    std::uint64_t at_ = 0;
    Overrides next_;
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
            return fail(ErrorCode::kInvalidArgument, "not a listed file of a tar file");
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

    // Compares the open file with what it was when it was opened.
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
        return fail(ErrorCode::kInvalidArgument, "no tar file");
    }
    return std::unique_ptr<Origin>{std::make_unique<TarOrigin>(std::move(files))};
}

}  // namespace stoker::sidecar
