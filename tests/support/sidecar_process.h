#pragma once

#include <string>

#include <sys/types.h>

#include "common/base/clock.h"

namespace stoker::test {

// The real program `stoker-sidecar` in a process of its own, killed when this goes away.
class SidecarProcess {
public:
    // Runs `binary --config config_path` with its log in `log_path`.
    SidecarProcess(
        const std::string& binary, const std::string& config_path, const std::string& log_path);
    SidecarProcess(const SidecarProcess&) = delete;
    SidecarProcess& operator=(const SidecarProcess&) = delete;
    ~SidecarProcess();

    // As the kernel does when memory is short.
    void kill();

    // SIGSTOP: it is there and does nothing; SIGCONT.
    void pause();
    void resume();

    // Ends it by itself before `limit` is over? stop() gives the exit code then.
    [[nodiscard]] bool ends_within(Duration limit) const;

    // SIGTERM, and the exit code (negative: the signal that ended it).
    int stop();

private:
    pid_t pid_ = -1;
};

}  // namespace stoker::test
