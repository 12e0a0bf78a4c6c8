#include "cli/kubectl_stoker/kubectl.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"

namespace stoker::cli {

namespace {

constexpr std::string_view kServes = "Starting to serve on ";
constexpr int kNoSuchProgram = 127;

// Socket path for the signal handler, which may only call async-signal-safe functions.
char socket_to_remove[108];
char folder_to_remove[108];

void remove_socket() {
    ::unlink(socket_to_remove);
    ::rmdir(folder_to_remove);
}

void remove_socket_and_die(int signal) {
    remove_socket();
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

std::vector<std::string> words_of(const ConnectOptions& options) {
    std::vector<std::string> words{"kubectl"};
    const auto add = [&](const char* flag, const std::string& value) {
        if (!value.empty()) {
            words.push_back(fmt::format("--{}={}", flag, value));
        }
    };
    add("kubeconfig", options.kubeconfig);
    add("context", options.context);
    add("as", options.as_user);
    for (const std::string& group : options.as_groups) {
        add("as-group", group);
    }
    return words;
}

struct Child {
    pid_t pid = -1;
    UniqueFd out;  // its stdout
};

[[noreturn]] void become(char* const* words, int out, bool quiet) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::dup2(out, STDOUT_FILENO);
    if (const int nowhere = ::open("/dev/null", O_WRONLY); quiet && nowhere >= 0) {
        ::dup2(nowhere, STDERR_FILENO);
    }
    ::execvp(words[0], words);
    ::_exit(kNoSuchProgram);
}

Result<Child> spawn(std::vector<std::string> words, bool quiet) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return fail(ErrorCode::kUnavailable, fmt::format("a pipe: {}", std::strerror(errno)));
    }
    Child child{-1, UniqueFd{ends[0]}};
    const UniqueFd out{ends[1]};
    std::vector<char*> pointers;
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    child.pid = ::fork();
    if (child.pid == 0) {
        become(pointers.data(), out.get(), quiet);
    }
    if (child.pid < 0) {
        return fail(
            ErrorCode::kUnavailable, fmt::format("starting kubectl: {}", std::strerror(errno)));
    }
    return child;
}

// Waits until `fd` is readable; false: `end` came first. With a zero `limit`, ignores `end`.
bool wait_to_read(int fd, Duration limit, TimePoint end) {
    using std::chrono::milliseconds;
    constexpr milliseconds kLongest = std::chrono::hours{24};
    const SystemClock clock;
    while (true) {
        const auto left = std::chrono::ceil<milliseconds>(end - clock.now());
        const bool bounded = limit > Duration::zero();
        pollfd waits{fd, POLLIN, 0};
        const auto wait = static_cast<int>(std::clamp(left, milliseconds{0}, kLongest).count());
        if (::poll(&waits, 1, bounded ? wait : -1) > 0) {
            return true;
        }
        if (bounded && left <= milliseconds{0}) {
            return false;
        }
    }
}

// Reads to end of file, or to the end of a line; nullopt if that takes longer than `limit` (zero:
// no limit).
std::optional<std::string> read_from(int fd, bool one_line, Duration limit) {
    const TimePoint end = SystemClock{}.now() + limit;
    std::string text;
    char c = 0;
    while (!(one_line && text.ends_with('\n'))) {
        if (!wait_to_read(fd, limit, end)) {
            return std::nullopt;
        }
        const ssize_t size = ::read(fd, &c, 1);
        if (size == 1) {
            text += c;
        } else if (size == 0 || errno != EINTR) {
            break;
        }
    }
    return text;
}

// Waits until the process has exited. Returns its exit status; -1: killed by a signal.
int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Result<std::string> private_folder() {
    const char* base = std::getenv("XDG_RUNTIME_DIR");
    for (const std::string& root :
         {std::string{base != nullptr ? base : ""}, std::string{"/tmp"}}) {
        std::string path = root + "/kubectl-stoker-XXXXXX";
        if (!root.empty() && path.size() < sizeof folder_to_remove - 8 &&
            ::mkdtemp(path.data()) != nullptr) {
            return path;
        }
    }
    return fail(
        ErrorCode::kUnavailable,
        fmt::format("no place for a socket in /tmp: {}", std::strerror(errno)));
}

}  // namespace

Kubectl::Kubectl(pid_t pid, std::string socket)
    : pid_(pid),
      socket_(std::move(socket)) {}

Kubectl::~Kubectl() {
    if (pid_ > 0) {
        ::kill(pid_, SIGTERM);
        wait_for(pid_);
    }
    remove_socket();
}

Result<std::unique_ptr<Kubectl>> Kubectl::start(const ConnectOptions& options) {
    STOKER_TRY(const std::string folder, private_folder());
    const std::string socket = folder + "/socket";
    std::strcpy(folder_to_remove, folder.c_str());
    std::strcpy(socket_to_remove, socket.c_str());
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
        ::signal(signal, remove_socket_and_die);
    }
    std::vector<std::string> words = words_of(options);
    words.insert(words.end(), {"proxy", "--unix-socket=" + socket});
    STOKER_TRY(const Child child, spawn(std::move(words), false));
    std::unique_ptr<Kubectl> running{new Kubectl(child.pid, socket)};
    const auto line = read_from(child.out.get(), true, options.request_timeout);
    if (line && line->starts_with(kServes)) {
        return running;
    }
    if (!line) {
        ::kill(child.pid, SIGKILL);
        return fail(
            ErrorCode::kDeadlineExceeded,
            "kubectl-stoker needs kubectl proxy; it did not start within the request timeout");
    }
    if (wait_for(std::exchange(running->pid_, 0)) == kNoSuchProgram) {
        return fail(ErrorCode::kNotFound, "kubectl-stoker needs kubectl; it is not in $PATH");
    }
    return fail(ErrorCode::kUnavailable, "kubectl-stoker needs kubectl proxy; it did not start");
}

std::string namespace_of_context(const ConnectOptions& options) {
    std::vector<std::string> words = words_of(options);
    words.insert(words.end(), {"config", "view", "--minify", "--output=jsonpath={..namespace}"});
    auto child = spawn(std::move(words), true);
    if (!child) {
        return "default";
    }
    const auto name = read_from(child->out.get(), false, options.request_timeout);
    if (!name) {
        ::kill(child->pid, SIGKILL);
    }
    return wait_for(child->pid) == 0 && name && !name->empty() ? *name : "default";
}

}  // namespace stoker::cli
