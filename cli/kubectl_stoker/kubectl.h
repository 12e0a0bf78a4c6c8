#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "cli/kubectl_stoker/options.h"
#include "common/base/result.h"

namespace stoker::cli {

// The user's own kubectl, as `kubectl proxy` at a Unix socket that only this user reaches: it knows
// every way of coming to a cluster and of proving who one is. One at a time; not thread-safe.
class Kubectl {
public:
    // Returns when it listens. kubectl itself says on stderr what is wrong with a kubeconfig.
    // Errors: kNotFound (there is no kubectl), kUnavailable, kDeadlineExceeded (not within the
    // request timeout).
    static Result<std::unique_ptr<Kubectl>> start(const ConnectOptions& options);

    Kubectl(const Kubectl&) = delete;
    Kubectl& operator=(const Kubectl&) = delete;
    // Ends it.
    ~Kubectl();

    [[nodiscard]] const std::string& socket() const { return socket_; }

private:
    Kubectl(pid_t pid, std::string socket);

    pid_t pid_;
    std::string socket_;
};

// That of the kubeconfig's context, else "default".
std::string namespace_of_context(const ConnectOptions& options);

}  // namespace stoker::cli
