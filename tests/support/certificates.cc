#include "tests/support/certificates.h"

#include <fstream>
#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "common/base/check.h"

namespace stoker::testing {

namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Key make_key() {
    return {EVP_EC_gen("P-256"), &EVP_PKEY_free};
}

void add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    STOKER_CHECK(extension != nullptr, "extension");
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

Certificate make_certificate(const char* name, long serial, EVP_PKEY* key) {
    Certificate certificate{X509_new(), &X509_free};
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24L * 3600);
    X509_set_pubkey(certificate.get(), key);
    X509_NAME_add_entry_by_txt(
        X509_get_subject_name(certificate.get()),
        "CN",
        MBSTRING_ASC,
        reinterpret_cast<const unsigned char*>(name),
        -1,
        -1,
        0);
    return certificate;
}

template <class Write>
std::string pem(Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
    STOKER_CHECK(write(bio.get()) == 1, "writing PEM");
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::trunc);
    file << text;
    STOKER_CHECK(file.good(), "writing a certificate");
}

}  // namespace

TestCertificates make_certificates() {
    const Key ca_key = make_key();
    const Certificate ca = make_certificate("stoker test CA", 1, ca_key.get());
    X509_set_issuer_name(ca.get(), X509_get_subject_name(ca.get()));
    add_extension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE");
    add_extension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
    X509_sign(ca.get(), ca_key.get(), EVP_sha256());

    const Key key = make_key();
    const Certificate leaf = make_certificate("stoker test leaf", 2, key.get());
    X509_set_issuer_name(leaf.get(), X509_get_subject_name(ca.get()));
    add_extension(leaf.get(), ca.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1");
    add_extension(leaf.get(), ca.get(), NID_ext_key_usage, "serverAuth,clientAuth");
    X509_sign(leaf.get(), ca_key.get(), EVP_sha256());

    TestCertificates made;
    made.ca = pem([&](BIO* bio) { return PEM_write_bio_X509(bio, ca.get()); });
    made.certificate = pem([&](BIO* bio) { return PEM_write_bio_X509(bio, leaf.get()); });
    made.key = pem([&](BIO* bio) {
        return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    return made;
}

void write_certificates(const TestCertificates& certificates, const std::string& directory) {
    write_file(directory + "/ca.crt", certificates.ca);
    write_file(directory + "/tls.crt", certificates.certificate);
    write_file(directory + "/tls.key", certificates.key);
}

}  // namespace stoker::testing
