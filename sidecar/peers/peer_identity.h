#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <openssl/x509.h>

#include "common/base/result.h"
#include "sidecar/peers/peer_network.h"

// The identity that a peer's certificate proves: the operator writes one URI for each dataset that
// the sidecar may serve.
namespace stoker::sidecar {

inline constexpr std::size_t kPeerDatasetsMax = 64;

// Parses the URIs "stoker://namespace/NAMESPACE/dataset/UID". kForbidden: no URI or more than
// kPeerDatasetsMax, another form, two namespaces, or a duplicate.
Result<PeerIdentity> identity_of_uris(const std::vector<std::string_view>& uris);

// The identity in the subject alternative names of `certificate`, whose chain the caller has
// verified. kForbidden: a name is not a URI, or as identity_of_uris().
Result<PeerIdentity> identity_of(const X509& certificate);

}  // namespace stoker::sidecar
