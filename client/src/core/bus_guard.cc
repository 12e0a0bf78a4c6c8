#include "client/src/core/bus_guard.h"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>

#include <unistd.h>

#include "common/base/crc32c.h"

namespace stoker::client {

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
        ::raise(signal);  // a signal that was sent; a fault recurs by itself
    }
}

void pass_on(int signal, siginfo_t* info, void* context) {
    const bool is_default = (previous.sa_flags & SA_SIGINFO) == 0 &&
                            (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN);
    if (is_default || passing_on) {  // their handler has called ours: a loop
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
        return;  // a later handler restored ours and raised again; the fault follows
    }
    pass_on(signal, info, context);
}

std::uintptr_t page_mask() {
    static const auto kPageBytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return kPageBytes - 1;
}

// Not inlined: the jump must not lose the caller's registers. `read` owns no resources.
template <class Read>
[[gnu::noinline]] bool guarded(const void* address, std::size_t length, Read read) {
    Landing here;
    const std::uintptr_t mask = page_mask();
    here.begin = reinterpret_cast<std::uintptr_t>(address) & ~mask;
    here.end = (reinterpret_cast<std::uintptr_t>(address) + length + mask) & ~mask;
    if (sigsetjmp(here.jump, 0) != 0) {  // NOLINT(cert-err52-cpp)
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

bool read_guarded(std::span<const std::byte> from, std::byte* to) {
    return guarded(from.data(), from.size(), [&] { std::memcpy(to, from.data(), from.size()); });
}

std::optional<std::uint64_t> load_guarded(const std::uint64_t* word) {
    std::uint64_t value = 0;
    const bool loaded =
        guarded(word, sizeof(value), [&] { value = __atomic_load_n(word, __ATOMIC_ACQUIRE); });
    return loaded ? std::optional{value} : std::nullopt;
}

std::optional<std::uint32_t> crc32c_guarded(std::span<const std::byte> bytes) {
    std::uint32_t crc = 0;
    const bool read = guarded(bytes.data(), bytes.size(), [&] { crc = crc32c(bytes); });
    return read ? std::optional{crc} : std::nullopt;
}

}  // namespace stoker::client
