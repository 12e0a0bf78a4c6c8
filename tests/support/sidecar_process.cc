#include "tests/support/sidecar_process.h"

#include <array>
#include <csignal>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/check.h"
#include "tests/support/poll.h"

extern char** environ;

namespace stoker::test {

SidecarProcess::SidecarProcess(
    const std::string& binary, const std::string& config_path, const std::string& log_path) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(
        &actions, STDERR_FILENO, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    std::string program = binary;
    std::string flag = "--config";
    std::string path = config_path;
    std::array<char*, 4> arguments = {program.data(), flag.data(), path.data(), nullptr};
    const int result =
        ::posix_spawn(&pid_, binary.c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    STOKER_CHECK(result == 0, "cannot start the sidecar");
}

SidecarProcess::~SidecarProcess() {
    kill();
}

void SidecarProcess::kill() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
}

void SidecarProcess::pause() {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    STOKER_CHECK(WIFSTOPPED(status), "the sidecar did not stop");
}

void SidecarProcess::resume() {
    ::kill(pid_, SIGCONT);
}

bool SidecarProcess::ends_within(Duration limit) const {
    return eventually(
        [this] {
            siginfo_t info{};
            const auto pid = static_cast<id_t>(pid_);
            ::waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT);
            return info.si_pid == pid_;
        },
        limit);
}

int SidecarProcess::stop() {
    int status = 0;
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace stoker::test
