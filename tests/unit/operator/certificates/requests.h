#pragma once

#include <memory>
#include <string>
#include <vector>

#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

#include "operator/certificates/x509.h"

namespace stoker::test {

struct RequestTerms {
    std::string curve = "P-256";  // "": RSA
    std::string common_name = "x";
    std::string names{};  // that the request asks for, as "DNS:a,URI:b"
    bool signs_itself = true;
};

// A certificate request (in `certificate`) and its key.
inline control::KeyPair make_request(const RequestTerms& terms) {
    using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
    const auto text = [](auto write) {
        const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
        write(bio.get());
        char* data = nullptr;
        const long size = BIO_get_mem_data(bio.get(), &data);
        return std::string(data, static_cast<std::size_t>(size));
    };
    const Key key{
        terms.curve.empty() ? EVP_RSA_gen(2048) : EVP_EC_gen(terms.curve.c_str()), &EVP_PKEY_free};
    const Key other{EVP_EC_gen("P-256"), &EVP_PKEY_free};
    const std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)> request(
        X509_REQ_new(), &X509_REQ_free);
    X509_REQ_set_pubkey(request.get(), key.get());
    X509_NAME_add_entry_by_txt(
        X509_REQ_get_subject_name(request.get()),
        "CN",
        MBSTRING_ASC,
        reinterpret_cast<const unsigned char*>(terms.common_name.c_str()),
        -1,
        -1,
        0);
    if (!terms.names.empty()) {
        STACK_OF(X509_EXTENSION)* extensions = sk_X509_EXTENSION_new_null();
        for (const auto& [kind, value] : std::vector<std::pair<int, std::string>>{
                 {NID_subject_alt_name, terms.names}, {NID_basic_constraints, "CA:TRUE"}}) {
            sk_X509_EXTENSION_push(
                extensions, X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
        }
        X509_REQ_add_extensions(request.get(), extensions);
        sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
    }
    X509_REQ_sign(request.get(), terms.signs_itself ? key.get() : other.get(), EVP_sha256());
    return {
        text([&](BIO* bio) { PEM_write_bio_X509_REQ(bio, request.get()); }), text([&](BIO* bio) {
            PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
        })};
}

// The URIs of the first certificate in `pem`, if it has no names of other kinds.
inline std::vector<std::string> uris_of(const std::string& pem) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
        BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
    GENERAL_NAMES* names = static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr));
    std::vector<std::string> uris;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
        const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_URI) {
            uris.emplace_back("a name that is no URI");
            continue;
        }
        uris.emplace_back(
            reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.uniformResourceIdentifier)),
            static_cast<std::size_t>(ASN1_STRING_length(name->d.uniformResourceIdentifier)));
    }
    GENERAL_NAMES_free(names);
    return uris;
}

}  // namespace stoker::test
