#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

// Who we are to the origin. The credentials are the pod's own: its environment, or a Secret of its
// namespace mounted as a directory whose files have the names of the variables. Nobody else ever
// sees them.
namespace stoker::sidecar {

struct Credentials {
    std::string access_key_id;
    std::string secret_access_key;
    std::string session_token;  // empty: none

    bool operator==(const Credentials&) const = default;
};

// Thread-safe.
class CredentialSource {
public:
    virtual ~CredentialSource() = default;

    // The credentials for one request; nullopt: send it anonymously. Cheap enough to be asked every
    // time. kForbidden: they are there but cannot be used (unreadable, half of them missing); the
    // message names what.
    virtual Result<std::optional<Credentials>> get() = 0;
};

// Looks up a variable as getenv() does; a test passes its own.
using Environment = std::function<const char*(const char*)>;

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, read once. Anonymous when neither
// of the first two is set. kInvalidArgument: only one of them is.
Result<std::unique_ptr<CredentialSource>> credentials_from_environment(
    const Environment& environment);

// Files of the same names in `directory`, read again when they change (looked at no more often than
// once a second), so a rotated Secret works without a restart. `clock` must outlive the source.
// While a file is missing, get() says so.
std::unique_ptr<CredentialSource> credentials_from_directory(
    std::string directory, const Clock& clock);

// Always anonymous.
std::unique_ptr<CredentialSource> no_credentials();

}  // namespace stoker::sidecar
