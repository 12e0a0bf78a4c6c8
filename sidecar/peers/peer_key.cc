#include "sidecar/peers/peer_key.h"

#include <memory>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "sidecar/peers/openssl.h"

namespace stoker::sidecar {

namespace {

constexpr const char* kCurve = "P-256";

using RequestPtr = std::unique_ptr<X509_REQ, OpensslFree<&X509_REQ_free>>;

// The PEM text that `write` produces; "" if it fails.
template <class Write>
std::string pem_of(Write write) {
    const BioPtr bio{BIO_new(BIO_s_secmem())};
    if (bio == nullptr || write(bio.get()) != 1) {
        return {};
    }
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

}  // namespace

Result<PeerKey> make_peer_key() {
    const PrivateKeyPtr key{EVP_EC_gen(kCurve)};
    const RequestPtr request{X509_REQ_new()};
    if (key == nullptr || request == nullptr ||
        X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
        X509_REQ_set_pubkey(request.get(), key.get()) != 1 ||
        X509_REQ_sign(request.get(), key.get(), EVP_sha256()) <= 0) {
        return fail(openssl_error(ErrorCode::kInternal, "making a peer's key"));
    }
    PeerKey made;
    made.key = pem_of([&](BIO* bio) {
        return PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    made.request = pem_of([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); });
    if (made.key.empty() || made.request.empty()) {
        return fail(openssl_error(ErrorCode::kInternal, "printing a peer's key"));
    }
    return made;
}

}  // namespace stoker::sidecar
