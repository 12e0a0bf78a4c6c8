#include "sidecar/peers/tls_context.h"

#include <array>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "sidecar/peers/peer_identity.h"

namespace stoker::sidecar {

namespace {

// The protocol's name in ALPN format: one byte with the length, then the name.
constexpr std::string_view kProtocol = "\x0dstoker-peer/1";
// Ciphers, fastest first, because these connections mainly carry samples' bytes.
constexpr const char* kCiphers =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr const char* kGroups = "X25519:P-256";
constexpr std::size_t kReadAheadBytes = std::size_t{64} << 10U;
constexpr int kChainDepthMax = 3;  // leaf, bridge, authority

const unsigned char* bytes_of(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}

int select_protocol(
    SSL* /*tls*/,
    const unsigned char** chosen,
    unsigned char* chosen_bytes,
    const unsigned char* offered,
    unsigned int offered_bytes,
    void* /*unused*/) {
    unsigned char* found = nullptr;
    const int result = SSL_select_next_proto(
        &found,
        chosen_bytes,
        bytes_of(kProtocol),
        static_cast<unsigned int>(kProtocol.size()),
        offered,
        offered_bytes);
    *chosen = found;
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Rejects, during the handshake, a certificate that is not a peer's, so that the other end gets an
// alert.
int verify_peer(int is_good, X509_STORE_CTX* chain) {
    if (is_good == 1 && X509_STORE_CTX_get_error_depth(chain) == 0 &&
        !identity_of(*X509_STORE_CTX_get_current_cert(chain))) {
        X509_STORE_CTX_set_error(chain, X509_V_ERR_CERT_REJECTED);
        return 0;
    }
    return is_good;
}

bool configure(SSL_CTX* context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(
        context,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
            SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    // Lets one system call read several records.
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, kReadAheadBytes);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, &verify_peer);
    SSL_CTX_set_verify_depth(context, kChainDepthMax);
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_X509_STRICT);
    SSL_CTX_set_alpn_select_cb(context, &select_protocol, nullptr);
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_num_tickets(context, 0) == 1 &&
           SSL_CTX_set_ciphersuites(context, kCiphers) == 1 &&
           SSL_CTX_set1_groups_list(context, kGroups) == 1 &&
           SSL_CTX_set_alpn_protos(
               context, bytes_of(kProtocol), static_cast<unsigned int>(kProtocol.size())) == 0;
}

CertificatePtr next_certificate(BIO* pem) {
    return CertificatePtr{PEM_read_bio_X509(pem, nullptr, nullptr, nullptr)};
}

bool use_chain(SSL_CTX* context, const std::string& pem) {
    const BioPtr bio = bio_of(pem);
    const CertificatePtr leaf = next_certificate(bio.get());
    if (leaf == nullptr || SSL_CTX_use_certificate(context, leaf.get()) != 1) {
        return false;
    }
    while (const CertificatePtr between = next_certificate(bio.get())) {
        if (SSL_CTX_add1_chain_cert(context, between.get()) != 1) {
            return false;
        }
    }
    return true;
}

bool use_key(SSL_CTX* context, const std::string& pem) {
    const BioPtr bio = bio_of(pem);
    const PrivateKeyPtr key{PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr)};
    return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
           SSL_CTX_check_private_key(context) == 1;
}

bool use_trust(SSL_CTX* context, const std::string& pem) {
    const BioPtr bio = bio_of(pem);
    X509_STORE* store = SSL_CTX_get_cert_store(context);
    bool found = false;
    while (const CertificatePtr authority = next_certificate(bio.get())) {
        found = X509_STORE_add_cert(store, authority.get()) == 1;
        if (!found) {
            return false;
        }
    }
    return found;
}

// Whether the error is an alert about a certificate: then the peer has refused ours.
bool is_refusal(unsigned long error) {
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) {
        return false;
    }
    switch (ERR_GET_REASON(error)) {
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return true;
        default:
            return false;
    }
}

}  // namespace

Result<TlsContext> make_tls_context(const PeerCredentials& credentials) {
    ERR_clear_error();
    TlsContext context{SSL_CTX_new(TLS_method()), &SSL_CTX_free};
    if (context == nullptr || !configure(context.get())) {
        return fail(openssl_error(ErrorCode::kInternal, "cannot prepare TLS for peers"));
    }
    if (!use_chain(context.get(), credentials.chain)) {
        return fail(openssl_error(ErrorCode::kInvalidArgument, "cannot use our peer certificate"));
    }
    if (!use_key(context.get(), credentials.key)) {
        return fail(openssl_error(ErrorCode::kInvalidArgument, "cannot use our peer key"));
    }
    if (!use_trust(context.get(), credentials.trust)) {
        return fail(openssl_error(ErrorCode::kInvalidArgument, "cannot use the peer CAs"));
    }
    ERR_clear_error();  // the end of each PEM text is an error
    return context;
}

Result<SslPtr> make_tls(const TlsContext& context, SocketUse& use, TlsEnd end) {
    SslPtr tls{SSL_new(context.get())};
    BioPtr bio = make_socket_bio(use);
    if (tls == nullptr || bio == nullptr) {
        return fail(openssl_error(ErrorCode::kInternal, "beginning TLS with a peer"));
    }
    BIO* owned = bio.release();
    SSL_set_bio(tls.get(), owned, owned);
    if (end == TlsEnd::kClient) {
        SSL_set_connect_state(tls.get());
    } else {
        SSL_set_accept_state(tls.get());
    }
    return tls;
}

Result<PeerIdentity> verified_peer(const SSL& tls) {
    const X509* certificate = SSL_get0_peer_certificate(&tls);
    if (certificate == nullptr || SSL_get_verify_result(&tls) != X509_V_OK) {
        return fail(ErrorCode::kForbidden, "a peer has no verified certificate");
    }
    const unsigned char* protocol = nullptr;
    unsigned int bytes = 0;
    SSL_get0_alpn_selected(&tls, &protocol, &bytes);
    if (std::string_view{reinterpret_cast<const char*>(protocol), bytes} != kProtocol.substr(1)) {
        return fail(ErrorCode::kForbidden, "a peer speaks another protocol");
    }
    return identity_of(*certificate);
}

Error tls_error(const SSL& tls, int ssl_error, int error_number) {
    const long verified = SSL_get_verify_result(&tls);
    if (verified != X509_V_OK) {
        ERR_clear_error();
        return {
            ErrorCode::kForbidden,
            fmt::format(
                "a peer's certificate is refused: {}", X509_verify_cert_error_string(verified))};
    }
    const unsigned long error = ERR_peek_error();
    if (is_refusal(error)) {
        return openssl_error(ErrorCode::kForbidden, "a certificate is refused");
    }
    if (ssl_error == SSL_ERROR_ZERO_RETURN) {
        ERR_clear_error();
        return {ErrorCode::kUnavailable, "the peer closed the connection"};
    }
    if (error != 0) {
        return openssl_error(ErrorCode::kUnavailable, "the connection to a peer broke");
    }
    return {
        ErrorCode::kUnavailable,
        fmt::format("the connection to a peer broke: {}", std::strerror(error_number))};
}

}  // namespace stoker::sidecar
