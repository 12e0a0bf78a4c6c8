#include "sidecar/device/device.h"

#include <algorithm>

#include <fmt/core.h>

#include "common/base/check.h"
#include "sidecar/device/blocked_time.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kTransferBytesMax = std::size_t{1}
                                          << 30U;  // bytes per call: the kernel's limit is 2 GiB
constexpr std::uint64_t kHintBytes =
    128 * 1024;  // the kernel cuts a longer hint to its read-ahead size

// The buffers of one write that are not written yet.
class PartsLeft {
public:
    explicit PartsLeft(std::span<const DeviceFile::ConstBuffer> parts)
        : count_(parts.size()) {
        std::ranges::copy(parts, parts_.begin());
        skip_empty();
    }

    [[nodiscard]] bool empty() const { return first_ == count_; }

    // Buffers for the next call: whole ones up to the limit, or the start of one.
    std::span<const DeviceFile::ConstBuffer> next(
        std::array<DeviceFile::ConstBuffer, DeviceFile::kPartsMax>& chosen) const {
        std::size_t bytes = 0;
        std::size_t count = 0;
        for (std::size_t i = first_; i < count_ && bytes < kTransferBytesMax; ++i) {
            const auto take = std::min(parts_.at(i).size(), kTransferBytesMax - bytes);
            chosen.at(count++) = parts_.at(i).first(take);
            bytes += take;
        }
        return std::span{chosen}.first(count);
    }

    void advance(std::size_t bytes) {
        while (bytes > 0) {
            auto& part = parts_.at(first_);
            const auto take = std::min(bytes, part.size());
            part = part.subspan(take);
            bytes -= take;
            skip_empty();
        }
    }

private:
    void skip_empty() {
        while (first_ < count_ && parts_.at(first_).empty()) {
            ++first_;
        }
    }

    std::array<DeviceFile::ConstBuffer, DeviceFile::kPartsMax> parts_{};
    std::size_t first_ = 0;
    std::size_t count_;
};

// Counts the error unless it is an expected answer (kNotFound, kAlreadyExists).
Error count_error(DeviceTally& tally, Error error) {
    if (error.code != ErrorCode::kNotFound && error.code != ErrorCode::kAlreadyExists) {
        ++tally.lock()->errors;
    }
    return error;
}

template <class R>
R counted(DeviceTally& tally, R result) {
    if (!result.has_value()) {
        return fail(count_error(tally, std::move(result).error()));
    }
    return result;
}

}  // namespace

Result<std::size_t> DeviceFile::read(std::uint64_t offset, std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
        const auto want = std::min(out.size() - done, kTransferBytesMax);
        STOKER_TRY(
            const std::size_t got,
            counted(tally_, do_read(offset + done, out.subspan(done, want))));
        {
            const auto counters = tally_.lock();
            ++counters->reads;
            counters->read_bytes += got;
        }
        if (got == 0) {
            break;
        }
        done += got;
    }
    return done;
}

Result<std::size_t> DeviceFile::timed_write(
    std::uint64_t offset, std::span<const ConstBuffer> parts) {
    if (!may_block()) {
        return do_write(offset, parts);
    }
    const BlockedTime blocked;
    auto written = do_write(offset, parts);
    tally_.lock()->write_blocked += blocked.elapsed();
    return written;
}

Status DeviceFile::write(std::uint64_t offset, std::span<const ConstBuffer> parts) {
    STOKER_CHECK(parts.size() <= kPartsMax, "too many parts in one write");
    PartsLeft left{parts};
    std::array<ConstBuffer, kPartsMax> chosen{};
    const auto turn = do_take_turn();
    while (!left.empty()) {
        STOKER_TRY(
            const std::size_t written, counted(tally_, timed_write(offset, left.next(chosen))));
        if (written == 0) {
            return fail(count_error(
                tally_, {ErrorCode::kUnavailable, "the file system accepts no more bytes"}));
        }
        {
            const auto counters = tally_.lock();
            ++counters->writes;
            counters->written_bytes += written;
        }
        left.advance(written);
        offset += written;
    }
    return {};
}

Status DeviceFile::truncate(std::uint64_t size_bytes) {
    return counted(tally_, do_truncate(size_bytes));
}

Status DeviceFile::allocate(std::uint64_t size_bytes) {
    return counted(tally_, do_allocate(size_bytes));
}

Status DeviceFile::sync() {
    ++tally_.lock()->syncs;
    return counted(tally_, do_sync());
}

Result<std::uint64_t> DeviceFile::size_bytes() {
    return counted(tally_, do_size_bytes());
}

void DeviceFile::will_need(std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t done = 0; done < bytes; done += kHintBytes) {
        do_will_need(offset + done, std::min(kHintBytes, bytes - done));
    }
}

void DeviceFile::wont_need(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes > 0) {  // the kernel would read zero as "to the end of the file"
        do_wont_need(offset, bytes);
    }
}

Result<std::unique_ptr<DeviceFile>> Device::create(const std::string& path, Access access) {
    return counted(tally_, do_create(path, access));
}

Result<std::unique_ptr<DeviceFile>> Device::open(const std::string& path) {
    return counted(tally_, do_open(path));
}

Result<std::unique_ptr<DeviceMapping>> Device::map(const std::string& path, MapMode mode) {
    return counted(tally_, do_map(path, mode));
}

Status Device::make_folder(const std::string& path, Access access) {
    return counted(tally_, do_make_folder(path, access));
}

Status Device::unlink(const std::string& path) {
    return counted(tally_, do_unlink(path));
}

Status Device::rename(const std::string& source, const std::string& target) {
    return counted(tally_, do_rename(source, target));
}

Result<std::vector<std::string>> Device::list(const std::string& folder) {
    auto names = counted(tally_, do_list(folder));
    if (names.has_value()) {
        std::ranges::sort(*names);
    }
    return names;
}

Status Device::sync_folder(const std::string& folder) {
    ++tally_.lock()->syncs;
    return counted(tally_, do_sync_folder(folder));
}

Result<DeviceSpace> Device::space(const std::string& path) {
    return counted(tally_, do_space(path));
}

Result<std::unique_ptr<DeviceLock>> Device::try_lock(const std::string& path) {
    return counted(tally_, do_try_lock(path));
}

Status replace_file(
    Device& device,
    const std::string& path,
    std::span<const std::byte> bytes,
    Durability durability,
    Access access) {
    const std::string temporary = path + ".tmp";
    if (const Status old = device.unlink(temporary);
        !old.has_value() && old.error().code != ErrorCode::kNotFound) {
        return old;
    }
    {
        STOKER_TRY(const auto file, device.create(temporary, access));
        const std::array<DeviceFile::ConstBuffer, 1> parts{bytes};
        STOKER_TRY_VOID(file->write(0, parts));
        if (durability == Durability::kPower) {
            STOKER_TRY_VOID(file->sync());
        }
    }
    STOKER_TRY_VOID(device.rename(temporary, path));
    return durability == Durability::kPower ? device.sync_folder(parent_path(path)) : Status{};
}

Result<std::vector<std::byte>> read_file(
    Device& device, const std::string& path, std::uint64_t bytes_max) {
    STOKER_TRY(const auto file, device.open(path));
    STOKER_TRY(const std::uint64_t size, file->size_bytes());
    if (size > bytes_max) {
        return fail(
            ErrorCode::kCorruption,
            fmt::format("{} has {} bytes, more than {}", path, size, bytes_max));
    }
    std::vector<std::byte> bytes(size);
    STOKER_TRY(const std::size_t got, file->read(0, bytes));
    bytes.resize(got);
    return bytes;
}

std::string join_path(std::string_view folder, std::string_view name) {
    return fmt::format("{}/{}", folder, name);
}

std::string parent_path(std::string_view path) {
    const auto slash = path.rfind('/');
    if (slash == std::string_view::npos) {
        return ".";
    }
    return std::string{slash == 0 ? "/" : path.substr(0, slash)};
}

}  // namespace stoker::sidecar
