#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

// Credentials for the origin. They are the pod's own: a Secret of its namespace mounted as
// a directory whose files have the names of the variables, a file that another program keeps fresh,
// its environment, or its web identity; choose_credentials() has the order. Nobody else ever sees
// them, and no metadata service is ever asked.
namespace stoker::sidecar {

struct Credentials {
    std::string access_key_id;
    std::string secret_access_key;
    std::string session_token;  // empty: none

    bool operator==(const Credentials&) const = default;
};

// Credentials that end by themselves; nullopt: they do not.
struct TemporaryCredentials {
    Credentials credentials;
    std::optional<WallTime> expires{};
};

// Thread-safe.
class CredentialSource {
public:
    virtual ~CredentialSource() = default;

    // The credentials for one request; nullopt: send it anonymously. Cheap enough to be asked every
    // time. kForbidden: they are there but cannot be used (unreadable, half of them missing,
    // refused, expired); the message names what. kUnavailable: they cannot be had now.
    virtual Result<std::optional<Credentials>> get() = 0;

    // Is what get() reads not there at all? Then no request can be made. Cheap, asks nobody.
    [[nodiscard]] virtual bool is_missing() const { return false; }
};

// Looks up a variable as getenv() does; a test passes its own.
using Environment = std::function<const char*(const char*)>;

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, read once. nullptr when neither
// of the first two is set. kInvalidArgument: only one of them is.
Result<std::unique_ptr<CredentialSource>> credentials_from_environment(
    const Environment& environment);

// The variable's value; "" where there is none.
std::string variable(const Environment& environment, const char* name);

// The text of a regular file of at most 64 KiB, without the white space at its end that editors and
// `kubectl create secret` leave behind. kForbidden: it cannot be read, is empty or larger; the
// message names it.
Result<std::string> read_small_file(const std::string& path);

// What `read` finds, read again when it is asked for and a second has passed, so that rotated keys
// work without a restart. The source is missing where `path` is; errors of `read` name the file.
// `clock` must outlive the source.
std::unique_ptr<CredentialSource> credentials_from_files(
    std::string path, std::function<Result<TemporaryCredentials>()> read, const Clock& clock);

// Files of the same names in `directory`. While a file is missing, get() says so.
std::unique_ptr<CredentialSource> credentials_from_directory(
    const std::string& directory, const Clock& clock);

// Always anonymous.
std::unique_ptr<CredentialSource> no_credentials();

}  // namespace stoker::sidecar
