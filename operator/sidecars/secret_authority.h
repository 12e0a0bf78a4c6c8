#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/certificates/authority.h"
#include "operator/kube/client.h"
#include "operator/sidecars/served_certificate.h"

namespace stoker::control {

// The operator as its own CA: the authority is in one Secret of the operator's namespace, the leaf
// in memory. Every replica has an instance; they agree because the Secret is created only if absent
// and changed only over the version that was read. Not thread-safe: give load() to a
// CertificateKeeper.
//
// A deleted Secret is written again from memory. A Secret that is not a valid authority is left
// alone, and load() returns an error.
class SecretAuthority {
public:
    struct Options {
        ObjectKey secret;
        std::vector<std::string> dns_names;  // of the leaf
        AuthorityTerms terms;
    };

    // Both must outlive it. `client` writes without leadership.
    SecretAuthority(ApiClient& client, Options options, const Clock& clock);

    // Reads the Secret, executes due work (create the CA, begin or end a rotation, renew the leaf)
    // and returns the result. Errors: the API server's; kCorruption: the Secret holds other data;
    // kConflict: other replicas won the write several times.
    Result<ServedCertificate> load();

private:
    struct Found {
        std::optional<Object> object;
        std::optional<Authority> authority;
    };

    Result<Found> find();
    Result<Authority> settle();
    Status write(const Found& found, const Authority& authority);
    Status renew_leaf(const Authority& authority);

    ApiClient& client_;
    Options options_;
    const Clock& clock_;
    std::optional<Authority> known_;
    KeyPair leaf_;
    std::string issued_under_;  // the signing certificate and the bridge of leaf_
};

}  // namespace stoker::control
