#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "cli/kubectl_stoker/options.h"
#include "common/base/result.h"

namespace stoker::cli {

// Runs the user's own `kubectl proxy` on a Unix socket that only this user can open: kubectl
// supports every way to connect and authenticate. One instance at a time; not thread-safe.
class Kubectl {
public:
    // Returns once the proxy listens. kubectl reports kubeconfig errors on stderr. Errors:
    // kNotFound (no kubectl), kUnavailable, kDeadlineExceeded (not within the request timeout).
    static Result<std::unique_ptr<Kubectl>> start(const ConnectOptions& options);

    Kubectl(const Kubectl&) = delete;
    Kubectl& operator=(const Kubectl&) = delete;
    // Stops the proxy.
    ~Kubectl();

    [[nodiscard]] const std::string& socket() const { return socket_; }

private:
    Kubectl(pid_t pid, std::string socket);

    pid_t pid_;
    std::string socket_;
};

// The namespace of the kubeconfig's current context, or "default".
std::string namespace_of_context(const ConnectOptions& options);

}  // namespace stoker::cli
