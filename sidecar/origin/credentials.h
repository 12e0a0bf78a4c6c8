#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"

// Credentials for the origin, always the pod's own. Sources: a mounted Secret directory with one
// file per environment variable (AWS_ACCESS_KEY_ID, ...), a file that another program renews, the
// environment, or the pod's web identity; choose_credentials() defines the order. Credentials are
// not shared with other pods, and no metadata service is used.
namespace stoker::sidecar {

struct Credentials {
    std::string access_key_id;
    std::string secret_access_key;
    std::string session_token;  // empty: none

    bool operator==(const Credentials&) const = default;
};

// Credentials with an expiry time; nullopt: they do not expire.
struct TemporaryCredentials {
    Credentials credentials;
    std::optional<WallTime> expires{};
};

// Thread-safe.
class CredentialSource {
public:
    virtual ~CredentialSource() = default;

    // The credentials for one request; nullopt: send it anonymously. kForbidden: present but
    // unusable (unreadable, incomplete, refused, expired); the message names the cause.
    // kUnavailable: not available now.
    using Answer = Result<std::optional<Credentials>>;

    // Returns credentials without waiting for the network; cheap enough for every request. nullopt:
    // a service must be asked first; a thread of the source calls `ready` when it has answered, at
    // the latest while the source is destroyed. `ready` must neither block nor call the source.
    virtual std::optional<Answer> try_get(std::function<void()> ready) = 0;

    // Returns credentials as try_get() does, but waits for the service.
    Answer get();

    // Whether the source that get() reads is missing, so that no request can be made. Cheap, no
    // network.
    [[nodiscard]] virtual bool is_missing() const { return false; }
};

// Looks up a variable as getenv() does; a test passes its own.
using Environment = std::function<const char*(const char*)>;

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, read once. nullptr when neither
// of the first two is set. kInvalidArgument: only one of them is.
Result<std::unique_ptr<CredentialSource>> credentials_from_environment(
    const Environment& environment);

// The variable's value; "" if it is not set.
std::string variable(const Environment& environment, const char* name);

// Reads the text of a regular file of at most 64 KiB, without the white space at its end that
// editors and `kubectl create secret` leave there. kForbidden: it cannot be read, is empty or
// larger; the message names the file.
Result<std::string> read_small_file(const std::string& path);

// Calls `read` again when a second has passed since the last call, so that rotated keys work
// without a restart. is_missing() is true while none of `paths` exists; errors of `read` name the
// file. `clock` must outlive the source.
std::unique_ptr<CredentialSource> credentials_from_files(
    std::vector<std::string> paths,
    std::function<Result<TemporaryCredentials>()> read,
    const Clock& clock);

// Reads files in `directory` that are named like the variables. While one is missing, get() fails.
std::unique_ptr<CredentialSource> credentials_from_directory(
    const std::string& directory, const Clock& clock);

// A source whose requests are always anonymous.
std::unique_ptr<CredentialSource> no_credentials();

}  // namespace stoker::sidecar
