#pragma once

#include <string>

#include <sys/types.h>

#include "common/base/clock.h"

namespace stoker::test {

// The real program `stoker-sidecar` as a process; the destructor kills it.
class SidecarProcess {
public:
    // Runs `binary --config config_path` with its log in `log_path`.
    SidecarProcess(
        const std::string& binary, const std::string& config_path, const std::string& log_path);
    SidecarProcess(const SidecarProcess&) = delete;
    SidecarProcess& operator=(const SidecarProcess&) = delete;
    ~SidecarProcess();

    [[nodiscard]] pid_t pid() const { return pid_; }

    // SIGKILL, as the kernel sends it when memory is short.
    void kill();

    // pause() sends SIGSTOP, so the process exists and does nothing; resume() sends SIGCONT.
    void pause();
    void resume();

    // Whether the process exits by itself within `limit`; stop() then returns the exit code.
    [[nodiscard]] bool ends_within(Duration limit) const;

    // Sends SIGTERM; returns the exit code (negative: the signal that ended it).
    int stop();

private:
    pid_t pid_ = -1;
};

}  // namespace stoker::test
