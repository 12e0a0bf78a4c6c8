#pragma once

#include <functional>

#include <sys/wait.h>
#include <unistd.h>

namespace stoker::test {

// Runs `work`, which would change this process, in a forked child. Returns its exit code; -1: a
// signal ended it.
inline int exit_code_of_child(const std::function<int()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(work());
    }
    int status = -1;
    if (::waitpid(child, &status, 0) != child) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace stoker::test
