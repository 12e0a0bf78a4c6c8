#pragma once

#include <functional>
#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"

// Address and credentials of the API server; reloaded while the operator runs, because tokens and
// certificates rotate.
namespace stoker::control {

// The configured values; paths absolute.
struct AccessConfig {
    std::string server;       // "https://10.96.0.1:443"
    std::string unix_socket;  // connect here, "": to the server's address
    std::string ca_file;      // "": the system's
    std::string token_file;   // "": none
};

// The credentials for one request.
struct Access {
    std::string server;
    std::string unix_socket;
    std::string ca_pem;         // "": the system's
    std::string authorization;  // the header's value, "": none
};

// Caches the credentials: the token for 60 s, the CA for 5 min. An unreadable or empty file keeps
// the previous value; after a 401 the token is read at once. Thread-safe; may block on files.
class AccessSource {
public:
    using ReadFile = std::function<Result<std::string>(const std::string& path)>;

    AccessSource(AccessConfig config, ReadFile read_file, const Clock& clock);

    // Errors: the files' errors, if there is no previous value.
    Result<Access> get();

    // Reports a 401 for this authorization. Returns true if get() may now return another one.
    bool reject(const std::string& authorization);

private:
    struct CachedFile {
        std::string text;
        TimePoint read_at{};
        bool known = false;
    };

    using Files = std::map<std::string, CachedFile>;

    Result<std::string> text_of(Files& files, const std::string& path, Duration keep);

    AccessConfig config_;
    ReadFile read_file_;
    const Clock* clock_;
    Guarded<Files> files_;
};

// The credentials that the kubelet mounts into a pod. `env` reads the environment. kNotFound: not
// in a pod (no KUBERNETES_SERVICE_HOST).
Result<AccessConfig> in_cluster_access(
    const std::function<std::string(const char*)>& env,
    const std::string& mount = "/var/run/secrets/kubernetes.io/serviceaccount");

std::string base64_encode(const std::string& bytes);
Result<std::string> base64_decode(const std::string& text);

}  // namespace stoker::control
