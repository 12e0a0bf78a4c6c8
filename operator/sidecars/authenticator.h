#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"

namespace stoker::control {

// Whose ServiceAccount token it is.
struct PodIdentity {
    std::string namespace_name;
    std::string service_account;
    std::string pod;
    std::string node;  // empty where the API server does not say it (before 1.30)

    bool operator==(const PodIdentity&) const = default;
};

// The door behind which the API server says who calls. Thread-safe.
class Authenticator {
public:
    // On any thread, also before authenticate() returns. kForbidden: not a token for us, or not one
    // of a pod. kUnavailable, kDeadlineExceeded, kResourceExhausted: cannot be told now.
    using Done = std::function<void(Result<PodIdentity>)>;

    virtual ~Authenticator() = default;

    // `token` as it came from the network. Calls `done` exactly once, and never after the
    // destructor has returned.
    virtual void authenticate(std::string token, Done done) = 0;
};

}  // namespace stoker::control
