#include "sidecar/files/file_protocol.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>

namespace stoker::files {

namespace {

constexpr int kNoticeResend = 7;  // FUSE_NOTIFY_RESEND of newer headers
constexpr std::uint32_t kBlockBytes = 4096;
constexpr std::uint32_t kListBytesMax = 1 << 20;
constexpr std::uint64_t kDots = 2;  // entries "." and "..", which precede a folder's own ones

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span{&value, 1});
}

template <class T>
std::optional<T> take(std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(T)) {
        return std::nullopt;
    }
    T value{};
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
}

std::vector<std::byte> reply_of(std::uint64_t unique, std::span<const std::byte> payload) {
    std::vector<std::byte> reply = reply_header(unique, payload.size());
    reply.insert(reply.end(), payload.begin(), payload.end());
    return reply;
}

Outcome say(std::vector<std::byte> reply) {
    Outcome outcome;
    outcome.step = Step::kReply;
    outcome.reply = std::move(reply);
    return outcome;
}

// One request and the data needed to answer it.
class Call {
public:
    Call(
        const fuse_in_header& head,
        std::span<const std::byte> body,
        const ShownFiles& files,
        std::uint64_t new_handle)
        : head_(head),
          body_(body),
          files_(files),
          new_handle_(new_handle) {}

    Outcome answer();

private:
    [[nodiscard]] Outcome refuse(int error) const { return say(error_reply(head_.unique, error)); }

    template <class T>
    [[nodiscard]] Outcome give(const T& payload) const {
        return say(reply_of(head_.unique, bytes_of(payload)));
    }

    [[nodiscard]] fuse_attr attributes(const FileNode& node) const;
    [[nodiscard]] fuse_entry_out entry(const FileNode& node) const;
    // Answers requests that do not need the tree; nullopt: this one needs it.
    [[nodiscard]] std::optional<Outcome> answer_always() const;
    [[nodiscard]] Outcome answer_file(const FileNode& node) const;
    [[nodiscard]] Outcome lookup() const;
    [[nodiscard]] Outcome attributes_of(const FileNode& node) const;
    [[nodiscard]] Outcome open(const FileNode& node) const;
    [[nodiscard]] Outcome read(const FileNode& node) const;
    [[nodiscard]] Outcome list(const FileNode& node, bool with_attributes) const;
    [[nodiscard]] Outcome statistics() const;
    [[nodiscard]] Outcome cancel() const;
    [[nodiscard]] Outcome release() const;

    const fuse_in_header& head_;
    std::span<const std::byte> body_;
    const ShownFiles& files_;
    std::uint64_t new_handle_;
};

fuse_attr Call::attributes(const FileNode& node) const {
    fuse_attr result{};
    result.ino = node.id;
    result.size = node.size_bytes();
    result.blocks = (node.size_bytes() + 511) / 512;
    result.atime = result.mtime = result.ctime =
        static_cast<std::uint64_t>(files_.modified.time_since_epoch().count());
    result.mode = node.is_folder ? S_IFDIR | 0555 : S_IFREG | 0444;
    result.nlink = node.is_folder ? 2 : 1;
    result.blksize = kBlockBytes;
    return result;
}

fuse_entry_out Call::entry(const FileNode& node) const {
    fuse_entry_out result{};
    result.nodeid = node.id;
    result.generation = 1;
    result.entry_valid = result.attr_valid = kValidSeconds;
    result.attr = attributes(node);
    return result;
}

Outcome Call::lookup() const {
    const auto* text = reinterpret_cast<const char*>(body_.data());
    const std::string_view name{text, ::strnlen(text, body_.size())};
    if (name.size() == body_.size()) {
        return refuse(EINVAL);
    }
    if (name.size() > kNameBytesMax) {
        return refuse(ENAMETOOLONG);
    }
    if (const auto node = files_.tree->lookup(head_.nodeid, name)) {
        return give(entry(*node));
    }
    fuse_entry_out absent{};
    absent.entry_valid = kValidSeconds;
    return give(absent);
}

Outcome Call::attributes_of(const FileNode& node) const {
    fuse_attr_out result{};
    result.attr_valid = kValidSeconds;
    result.attr = attributes(node);
    return give(result);
}

Outcome Call::open(const FileNode& node) const {
    const auto wanted = take<fuse_open_in>(body_);
    if (!wanted) {
        return refuse(EINVAL);
    }
    if (node.is_folder) {
        return refuse(EISDIR);
    }
    if ((wanted->flags & O_ACCMODE) != O_RDONLY) {
        return refuse(EROFS);
    }
    fuse_open_out result{};
    result.fh = new_handle_;
    result.open_flags = FOPEN_KEEP_CACHE | FOPEN_NOFLUSH;
    return give(result);
}

Outcome Call::read(const FileNode& node) const {
    const auto wanted = take<fuse_read_in>(body_);
    if (!wanted) {
        return refuse(EINVAL);
    }
    if (node.is_folder) {
        return refuse(EISDIR);
    }
    const std::uint64_t size = node.size_bytes();
    if (wanted->offset >= size || wanted->size == 0) {
        return refuse(0);
    }
    Outcome outcome;
    outcome.step = Step::kRead;
    outcome.unique = head_.unique;
    outcome.handle = wanted->fh;
    outcome.object = node.object;
    outcome.offset = wanted->offset;
    outcome.length = std::min<std::uint64_t>(wanted->size, size - wanted->offset);
    return outcome;
}

// A folder's entries in the form of READDIR or READDIRPLUS, up to a number of bytes.
class Listing {
public:
    Listing(std::uint32_t bytes_max, bool with_attributes)
        : bytes_max_(std::min(bytes_max, kListBytesMax)),
          with_attributes_(with_attributes) {}

    // Adds an entry. False: it does not fit. `next`: position after the entry.
    bool add(const FileNode& node, const fuse_entry_out& entry, std::uint64_t next) {
        const std::size_t head = with_attributes_ ? sizeof(fuse_entry_out) : 0;
        const std::size_t bytes = FUSE_DIRENT_ALIGN(head + FUSE_NAME_OFFSET + node.name.size());
        if (bytes_.size() + bytes > bytes_max_) {
            return false;
        }
        fuse_dirent fields{};
        fields.ino = node.id;
        fields.off = next;
        fields.namelen = static_cast<std::uint32_t>(node.name.size());
        fields.type = node.is_folder ? DT_DIR : DT_REG;
        const std::size_t end = bytes_.size() + bytes;
        if (with_attributes_) {
            append(bytes_of(entry));
        }
        append(bytes_of(fields).first(FUSE_NAME_OFFSET));
        append(std::as_bytes(std::span{node.name}));
        bytes_.resize(end);
        return true;
    }

    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

private:
    void append(std::span<const std::byte> part) {
        bytes_.insert(bytes_.end(), part.begin(), part.end());
    }

    std::size_t bytes_max_;
    bool with_attributes_;
    std::vector<std::byte> bytes_;
};

// Lists a folder. "." and ".." carry no attributes, because the kernel looks up neither.
Outcome Call::list(const FileNode& node, bool with_attributes) const {
    constexpr std::string_view kNames[] = {".", ".."};
    const auto wanted = take<fuse_read_in>(body_);
    if (!wanted) {
        return refuse(EINVAL);
    }
    if (!node.is_folder) {
        return refuse(ENOTDIR);
    }
    Listing listing{wanted->size, with_attributes};
    std::uint64_t at = wanted->offset;
    for (; at < kDots; ++at) {
        FileNode self = node;
        self.name = kNames[at];
        if (!listing.add(self, {}, at + 1)) {
            return say(reply_of(head_.unique, listing.bytes()));
        }
    }
    files_.tree->list(node.id, at - kDots, [&](const FileNode& found, std::uint64_t next) {
        return listing.add(found, entry(found), next + kDots);
    });
    return say(reply_of(head_.unique, listing.bytes()));
}

Outcome Call::statistics() const {
    fuse_statfs_out result{};
    result.st.bsize = result.st.frsize = kBlockBytes;
    result.st.namelen = kNameBytesMax;
    if (files_.tree != nullptr) {
        result.st.blocks = files_.tree->manifest().total_bytes().count() / kBlockBytes + 1;
        result.st.files = files_.tree->file_count();
    }
    return give(result);
}

Outcome Call::cancel() const {
    Outcome outcome;
    const auto wanted = take<fuse_interrupt_in>(body_);
    outcome.step = wanted ? Step::kCancel : Step::kNothing;
    outcome.unique = wanted ? wanted->unique : 0;
    return outcome;
}

Outcome Call::release() const {
    Outcome outcome = refuse(0);
    if (const auto wanted = take<fuse_release_in>(body_)) {
        outcome.step = Step::kRelease;
        outcome.handle = wanted->fh;
    }
    return outcome;
}

std::optional<Outcome> Call::answer_always() const {
    switch (head_.opcode) {
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
            return Outcome{};
        case FUSE_INTERRUPT:
            return cancel();
        case FUSE_RELEASE:
            return release();
        case FUSE_STATFS:
            return statistics();
        case FUSE_RELEASEDIR:
        case FUSE_DESTROY:
        case FUSE_FSYNC:
        case FUSE_FSYNCDIR:
            return refuse(0);
        case FUSE_IOCTL:
            return refuse(ENOTTY);
        case FUSE_READLINK:
            return refuse(EINVAL);
        case FUSE_LOOKUP:
        case FUSE_OPEN:
        case FUSE_READ:
        case FUSE_READDIR:
        case FUSE_READDIRPLUS:
        case FUSE_GETATTR:
            return std::nullopt;
        default:
            // After ENOSYS the kernel does not send this kind of request again: without OPENDIR it
            // caches folders, and without FLUSH and ACCESS it proceeds. Requests that write do not
            // come, because the mount is read-only.
            return refuse(ENOSYS);
    }
}

Outcome Call::answer_file(const FileNode& node) const {
    switch (head_.opcode) {
        case FUSE_OPEN:
            return open(node);
        case FUSE_READ:
            return read(node);
        case FUSE_READDIR:
            return list(node, false);
        case FUSE_READDIRPLUS:
            return list(node, true);
        default:
            return attributes_of(node);
    }
}

Outcome Call::answer() {
    if (auto outcome = answer_always()) {
        return *std::move(outcome);
    }
    if (head_.opcode == FUSE_GETATTR && head_.nodeid == kRoot) {
        return attributes_of({});
    }
    if (files_.tree == nullptr) {
        Outcome outcome;
        outcome.step = Step::kWait;
        return outcome;
    }
    const auto node = files_.tree->find(head_.nodeid);
    if (!node) {
        return refuse(ESTALE);
    }
    return head_.opcode == FUSE_LOOKUP ? lookup() : answer_file(*node);
}

}  // namespace

std::vector<std::byte> error_reply(std::uint64_t unique, int error) {
    fuse_out_header head{};
    head.len = sizeof head;
    head.error = -error;
    head.unique = unique;
    const auto bytes = bytes_of(head);
    return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> reply_header(std::uint64_t unique, std::size_t payload_bytes) {
    fuse_out_header head{};
    head.len = static_cast<std::uint32_t>(sizeof head + payload_bytes);
    head.unique = unique;
    const auto bytes = bytes_of(head);
    return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> resend_notice() {
    return error_reply(0, -kNoticeResend);
}

Outcome handle(
    std::span<const std::byte> request, const ShownFiles& files, std::uint64_t new_handle) {
    const auto head = take<fuse_in_header>(request);
    if (!head || head->len != request.size()) {
        return {};
    }
    return Call{*head, request.subspan(sizeof *head), files, new_handle}.answer();
}

}  // namespace stoker::files
