#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/certificates/authority.h"
#include "operator/kube/client.h"
#include "operator/sidecars/served_certificate.h"
#include "wire/control/orders.h"

namespace stoker::control {

// The operator as its own CA: the authority is in one Secret of the operator's namespace, the leaf
// in memory. Every replica has an instance; they agree because the Secret is created only if absent
// and changed only over the version that was read. load() is not thread-safe: give it to a
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

    // `client` and `clock` must outlive it. `client` must write without leadership.
    SecretAuthority(ApiClient& client, Options options, const Clock& clock);

    // Reads the Secret, executes due work (create the CA, begin or end a rotation, renew the leaf)
    // and returns the result. Errors: the API server's; kCorruption: the Secret holds other data;
    // kConflict: other replicas won the write several times.
    Result<ServedCertificate> load();

    // Signs a sidecar's request under the authority of the last load(). Thread-safe. kUnavailable:
    // there was none. kInvalidArgument: the request is invalid.
    Result<PeerCertificate> issue_peer(
        const std::string& request_pem, const std::vector<std::string>& uris);

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
    Guarded<std::optional<Authority>> signer_;  // known_, for issue_peer()
    KeyPair leaf_;
    std::string issued_under_;  // the signing certificate and the bridge of leaf_
};

}  // namespace stoker::control
