#pragma once

#include <functional>
#include <string>

#include "common/base/result.h"

namespace stoker::control {

// The owner of a ServiceAccount token.
struct PodIdentity {
    std::string namespace_name;
    std::string service_account;
    std::string pod;
    std::string node;  // empty if the API server does not report it (before 1.30)

    bool operator==(const PodIdentity&) const = default;
};

// The interface to the API server's token review. Thread-safe.
class Authenticator {
public:
    // Called on any thread, possibly before authenticate() returns. kForbidden: wrong audience, or
    // not a pod's token. kUnavailable, kDeadlineExceeded, kResourceExhausted: cannot be checked
    // now.
    using Done = std::function<void(Result<PodIdentity>)>;

    virtual ~Authenticator() = default;

    // `token` is raw network input. Calls `done` exactly once, and never after the destructor has
    // returned.
    virtual void authenticate(std::string token, Done done) = 0;
};

}  // namespace stoker::control
