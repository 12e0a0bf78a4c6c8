#pragma once

#include <string>

#include "common/base/result.h"

namespace stoker::sidecar {

// A private key that never leaves this process, and the request for its certificate. PEM texts.
struct PeerKey {
    std::string key;      // PKCS#8, ECDSA P-256; never log it, never write it to a file
    std::string request;  // PKCS#10, signed by `key`; the operator takes only the public key
};

// Makes a new key and its request. Any thread. kInternal: OpenSSL failed.
Result<PeerKey> make_peer_key();

}  // namespace stoker::sidecar
