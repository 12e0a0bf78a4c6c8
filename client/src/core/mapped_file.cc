#include "client/src/core/mapped_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <mutex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/crc32c.h"
#include "common/base/unique_fd.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace stoker::client {

namespace {

// Mask for the bits of an address inside its page.
std::uintptr_t page_mask() {
    static const auto kPageBytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return kPageBytes - 1;
}

// Calls madvise() for the pages that contain `bytes`.
int advise(std::span<const std::byte> bytes, int advice) {
    const std::uintptr_t into_page = reinterpret_cast<std::uintptr_t>(bytes.data()) & page_mask();
    auto* begin = const_cast<std::byte*>(bytes.data() - into_page);
    return ::madvise(begin, bytes.size() + into_page, advice);
}

}  // namespace

Error system_error(int error_number, const std::string& context) {
    ErrorCode code = ErrorCode::kUnavailable;
    if (error_number == ENOENT || error_number == ENOTDIR) {
        code = ErrorCode::kNotFound;
    } else if (error_number == EACCES || error_number == EPERM) {
        code = ErrorCode::kForbidden;
    } else if (error_number == ENOMEM || error_number == EMFILE || error_number == ENFILE) {
        code = ErrorCode::kResourceExhausted;
    }
    return {code, fmt::format("{}: {}", context, std::generic_category().message(error_number))};
}

Result<MappedFile> MappedFile::map(int fd, std::uint64_t length_bytes, const std::string& name) {
    MappedFile file;
    if (length_bytes == 0) {
        return file;
    }
    void* data = ::mmap(nullptr, length_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) {
        return fail(system_error(errno, fmt::format("mapping {}", name)));
    }
    file.data_ = static_cast<const std::byte*>(data);
    file.length_bytes_ = length_bytes;
    return file;
}

Result<MappedFile> MappedFile::open(const std::string& path) {
    const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};

    struct stat status {};

    if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
        return fail(system_error(errno, fmt::format("opening {}", path)));
    }
    STOKER_TRY(MappedFile file, map(fd.get(), static_cast<std::uint64_t>(status.st_size), path));
    file.device_ = status.st_dev;
    file.inode_ = status.st_ino;
    return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      length_bytes_(std::exchange(other.length_bytes_, 0)),
      device_(std::exchange(other.device_, 0)),
      inode_(std::exchange(other.inode_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(length_bytes_, other.length_bytes_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) {
        ::munmap(const_cast<std::byte*>(data_), length_bytes_);
    }
}

bool MappedFile::is_same_file_as(const std::string& path) const {
    struct stat status {};

    return ::stat(path.c_str(), &status) == 0 && status.st_dev == device_ &&
           status.st_ino == inode_;
}

bool MappedFile::is_readable(std::span<const std::byte> bytes) {
    if (advise(bytes, MADV_POPULATE_READ) == 0) {
        return true;
    }
    return errno != EFAULT && errno != EHWPOISON && errno != EIO;
}

void MappedFile::read_ahead(std::span<const std::byte> bytes) {
    static_cast<void>(advise(bytes, MADV_WILLNEED));  // a hint: the read itself reports errors
}

namespace {

// Where a thread continues when a page of [begin, end) cannot be read.
struct Landing {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    sigjmp_buf jump{};

    [[nodiscard]] bool covers(const void* address) const {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        return at >= begin && at < end;
    }
};

// Initial-exec: a signal handler must not allocate thread-local storage at first use.
[[gnu::tls_model("initial-exec")]] thread_local Landing* volatile landing = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local volatile bool passing_on = false;

struct sigaction previous {};  // written under `installing`, before our handler can run

std::mutex installing;

void die_of(int signal, const siginfo_t* info) {
    struct sigaction action {};

    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
    if (info->si_code <= 0) {
        ::raise(signal);  // repeats a sent signal; a fault recurs by itself
    }
}

void pass_on(int signal, siginfo_t* info, void* context) {
    const bool is_default = (previous.sa_flags & SA_SIGINFO) == 0 &&
                            (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN);
    if (is_default || passing_on) {  // their handler has called ours: it would loop
        die_of(signal, info);
        return;
    }
    passing_on = true;
    if ((previous.sa_flags & SA_SIGINFO) != 0) {
        previous.sa_sigaction(signal, info, context);
    } else {
        previous.sa_handler(signal);
    }
    passing_on = false;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
    Landing* here = landing;
    if (here != nullptr && info->si_code > 0 && here->covers(info->si_addr)) {
        siglongjmp(here->jump, 1);  // NOLINT(cert-err52-cpp): nothing in between has a destructor
    }
    if (here != nullptr && info->si_code == SI_TKILL) {
        return;  // a later handler has restored ours and raised the signal; the fault follows
    }
    pass_on(signal, info, context);
}

// Runs `read`, which must own no resources. False: it was ended at a page of `bytes` that cannot be
// read. Not inlined: the jump must not lose the caller's registers.
template <class Read>
[[gnu::noinline]] bool guarded(std::span<const std::byte> bytes, Read read) {
    Landing here;
    const std::uintptr_t mask = page_mask();
    here.begin = reinterpret_cast<std::uintptr_t>(bytes.data()) & ~mask;
    here.end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size() + mask) & ~mask;
    if (sigsetjmp(here.jump, 0) != 0) {  // NOLINT(cert-err52-cpp): as at siglongjmp
        landing = nullptr;
        return false;
    }
    landing = &here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    read();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    landing = nullptr;
    return true;
}

}  // namespace

void install_bus_guard() {
    const std::lock_guard lock{installing};

    struct sigaction now {};

    ::sigaction(SIGBUS, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_bus_error) {
        return;
    }
    previous = now;

    struct sigaction ours {};

    ours.sa_sigaction = &on_bus_error;
    // SIGBUS stays unblocked in the handler, because the jump leaves it without returning.
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    ::sigaction(SIGBUS, &ours, nullptr);
}

std::optional<std::uint32_t> copy_guarded(
    std::span<const std::byte> from, std::span<std::byte> to, std::size_t skipped) {
    const std::span<const std::byte> checked = to.size() == from.size() ? to : from;
    std::uint32_t crc = 0;
    const bool was_read = guarded(from, [&] {
        std::ranges::copy(from.first(to.size()), to.begin());
        crc = crc32c(checked.subspan(skipped));
    });
    return was_read ? std::optional{crc} : std::nullopt;
}

std::optional<std::uint64_t> load_guarded(const std::uint64_t* word) {
    std::uint64_t value = 0;
    const bool loaded = guarded(std::as_bytes(std::span{word, 1}), [&] {
        value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    });
    return loaded ? std::optional{value} : std::nullopt;
}

}  // namespace stoker::client
