#include "tests/support/http_certificate.h"

#include <memory>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/base/check.h"

namespace stoker::test {

namespace {

template <auto Free>
struct Freer {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};

using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Cert = std::unique_ptr<X509, Freer<X509_free>>;
using Memory = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

std::string contents(BIO* memory) {
    char* data = nullptr;
    const long length = BIO_get_mem_data(memory, &data);
    return {data, static_cast<std::size_t>(length)};
}

void add_extension(X509* cert, int nid, const char* value) {
    const Extension extension{X509V3_EXT_conf_nid(nullptr, nullptr, nid, value)};
    STOKER_CHECK(extension != nullptr, "a constant extension parses");
    X509_add_ext(cert, extension.get(), -1);
}

}  // namespace

Certificate make_certificate(const std::string& common_name) {
    const Key key{EVP_EC_gen("P-256")};
    const Cert cert{X509_new()};
    STOKER_CHECK(key != nullptr && cert != nullptr, "OpenSSL has memory");
    X509_set_version(cert.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert.get()), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert.get()), 3600);
    X509_set_pubkey(cert.get(), key.get());
    X509_NAME* name = X509_get_subject_name(cert.get());
    const auto* text = reinterpret_cast<const unsigned char*>(common_name.c_str());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0);
    X509_set_issuer_name(cert.get(), name);
    add_extension(cert.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    add_extension(cert.get(), NID_basic_constraints, "critical,CA:TRUE");
    STOKER_CHECK(X509_sign(cert.get(), key.get(), EVP_sha256()) > 0, "signing works");

    const Memory cert_text{BIO_new(BIO_s_mem())};
    const Memory key_text{BIO_new(BIO_s_mem())};
    PEM_write_bio_X509(cert_text.get(), cert.get());
    PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    return {contents(cert_text.get()), contents(key_text.get())};
}

}  // namespace stoker::test
