#include "operator/certificates/x509.h"

#include <array>
#include <ctime>
#include <memory>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace stoker::control {

namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using std::chrono::seconds;

constexpr const char* kCurve = "P-256";
constexpr const char* kCurveInKeys = "prime256v1";  // the same curve, as keys name it
constexpr std::size_t kSerialBytes = 16;
constexpr std::size_t kRequestBytesMax = std::size_t{16} << 10U;

struct Extension {
    int nid;
    std::string value;
};

Error openssl_error(ErrorCode code, std::string_view what) {
    std::array<char, 256> text{};
    ERR_error_string_n(ERR_get_error(), text.data(), text.size());
    ERR_clear_error();
    return {code, fmt::format("{}: {}", what, text.data())};
}

Bio memory_of(std::string_view text) {
    return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

Result<Certificate> parse_certificate(std::string_view pem) {
    const Bio bio = memory_of(pem);
    Certificate certificate{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free};
    if (certificate == nullptr) {
        return fail(openssl_error(ErrorCode::kCorruption, "reading a certificate"));
    }
    return certificate;
}

Result<Key> parse_key(std::string_view pem) {
    const Bio bio = memory_of(pem);
    Key key{PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free};
    if (key == nullptr) {
        return fail(openssl_error(ErrorCode::kCorruption, "reading a private key"));
    }
    return key;
}

template <class Write>
Result<std::string> to_pem(Write write) {
    const Bio bio{BIO_new(BIO_s_secmem()), &BIO_free};
    if (write(bio.get()) != 1) {
        return fail(openssl_error(ErrorCode::kInternal, "writing PEM"));
    }
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
}

Result<std::string> certificate_pem(X509* certificate) {
    return to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

Result<std::string> key_pem(EVP_PKEY* key) {
    return to_pem([&](BIO* bio) {
        return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
}

Result<Key> make_key() {
    Key key{EVP_EC_gen(kCurve), &EVP_PKEY_free};
    if (key == nullptr) {
        return fail(openssl_error(ErrorCode::kInternal, "making a key"));
    }
    return key;
}

bool set_time(ASN1_TIME* out, WallTime time) {
    const auto whole = std::chrono::floor<seconds>(time).time_since_epoch().count();
    return ASN1_TIME_set(out, static_cast<std::time_t>(whole)) != nullptr;
}

// Random and positive, so that certificates of one issuer have different serial numbers.
bool set_serial(X509* certificate) {
    std::array<unsigned char, kSerialBytes> bytes{};
    if (RAND_bytes(bytes.data(), bytes.size()) != 1) {
        return false;
    }
    bytes[0] &= 0x7FU;
    const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
        BN_bin2bn(bytes.data(), bytes.size(), nullptr), &BN_free);
    return number != nullptr &&
           BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_name(X509_NAME* name, const std::string& common_name) {
    return X509_NAME_add_entry_by_txt(
               name,
               "CN",
               MBSTRING_UTF8,
               reinterpret_cast<const unsigned char*>(common_name.data()),
               static_cast<int>(common_name.size()),
               -1,
               0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, const Extension& extension) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> made(
        X509V3_EXT_conf_nid(nullptr, &context, extension.nid, extension.value.c_str()),
        &X509_EXTENSION_free);
    return made != nullptr && X509_add_ext(certificate, made.get(), -1) == 1;
}

struct Draft {
    const X509_NAME* subject;
    EVP_PKEY* key;  // the subject's
    X509* issuer;   // null: self-signed
    EVP_PKEY* signer;
    Validity validity;
    std::vector<Extension> extensions;
};

Result<Certificate> sign(const Draft& draft) {
    Certificate made{X509_new(), &X509_free};
    X509* issuer = draft.issuer != nullptr ? draft.issuer : made.get();
    bool done = made != nullptr && X509_set_version(made.get(), X509_VERSION_3) == 1 &&
                set_serial(made.get()) &&
                set_time(X509_getm_notBefore(made.get()), draft.validity.not_before) &&
                set_time(X509_getm_notAfter(made.get()), draft.validity.not_after) &&
                X509_set_subject_name(made.get(), draft.subject) == 1 &&
                X509_set_issuer_name(made.get(), X509_get_subject_name(issuer)) == 1 &&
                X509_set_pubkey(made.get(), draft.key) == 1;
    for (const Extension& extension : draft.extensions) {
        done = done && add_extension(made.get(), issuer, extension);
    }
    if (!done || X509_sign(made.get(), draft.signer, EVP_sha256()) == 0) {
        return fail(openssl_error(ErrorCode::kInternal, "making a certificate"));
    }
    return made;
}

using Name = std::unique_ptr<X509_NAME, decltype(&X509_NAME_free)>;

Result<Name> make_name(const std::string& common_name) {
    Name name{X509_NAME_new(), &X509_NAME_free};
    if (name == nullptr || !set_name(name.get(), common_name)) {
        return fail(openssl_error(ErrorCode::kInternal, "making a certificate's name"));
    }
    return name;
}

Result<KeyPair> pair_of(X509* certificate, EVP_PKEY* key) {
    KeyPair pair;
    STOKER_TRY(pair.certificate, certificate_pem(certificate));
    STOKER_TRY(pair.key, key_pem(key));
    return pair;
}

using Request = std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)>;

bool is_on_our_curve(EVP_PKEY* key) {
    std::array<char, 32> curve{};
    std::size_t size = 0;
    return key != nullptr && EVP_PKEY_get_id(key) == EVP_PKEY_EC &&
           EVP_PKEY_get_group_name(key, curve.data(), curve.size(), &size) == 1 &&
           std::string_view{curve.data(), size} == kCurveInKeys;
}

// The curve is checked first, because verifying a huge RSA signature takes long.
Result<Request> parse_request(const std::string& pem) {
    if (pem.size() > kRequestBytesMax) {
        return fail(ErrorCode::kInvalidArgument, "the certificate request is too long");
    }
    const Bio bio = memory_of(pem);
    Request request{PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr), &X509_REQ_free};
    if (request == nullptr) {
        return fail(openssl_error(ErrorCode::kInvalidArgument, "reading a certificate request"));
    }
    EVP_PKEY* key = X509_REQ_get0_pubkey(request.get());
    if (!is_on_our_curve(key)) {
        ERR_clear_error();
        return fail(ErrorCode::kInvalidArgument, "the key of the certificate request is not P-256");
    }
    if (X509_REQ_verify(request.get(), key) != 1) {
        ERR_clear_error();
        return fail(
            ErrorCode::kInvalidArgument, "the certificate request is not signed by its own key");
    }
    return request;
}

// OpenSSL takes names as "URI:a,URI:b": a comma in a URI would add a name.
Status check_uris(const std::vector<std::string>& uris) {
    if (uris.empty() || uris.size() > kPeerUrisMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("a peer's certificate needs 1 to {} URIs", kPeerUrisMax));
    }
    constexpr std::string_view kAllowed =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:/._-";
    for (const std::string& uri : uris) {
        if (uri.empty() || uri.find_first_not_of(kAllowed) != std::string::npos) {
            return fail(ErrorCode::kInvalidArgument, "a URI has a character that is not allowed");
        }
    }
    return {};
}

WallTime time_of(const ASN1_TIME* time) {
    std::tm parts{};
    ASN1_TIME_to_tm(time, &parts);
    return WallTime{seconds{timegm(&parts)}};
}

}  // namespace

Result<KeyPair> make_ca(const std::string& common_name, Validity validity) {
    STOKER_TRY(const Key key, make_key());
    STOKER_TRY(const Name name, make_name(common_name));
    STOKER_TRY(
        const Certificate made,
        sign(
            {name.get(),
             key.get(),
             nullptr,
             key.get(),
             validity,
             {{NID_basic_constraints, "critical,CA:TRUE"},
              {NID_key_usage, "critical,keyCertSign,cRLSign"},
              {NID_subject_key_identifier, "hash"}}}));
    return pair_of(made.get(), key.get());
}

Result<KeyPair> make_leaf(
    const KeyPair& ca, const std::vector<std::string>& dns_names, Validity validity) {
    if (dns_names.empty()) {
        return fail(ErrorCode::kInvalidArgument, "a server's certificate needs a name");
    }
    STOKER_TRY(const Certificate issuer, parse_certificate(ca.certificate));
    STOKER_TRY(const Key issuer_key, parse_key(ca.key));
    STOKER_TRY(const Key key, make_key());
    STOKER_TRY(const Name name, make_name(dns_names[0].substr(0, 64)));
    STOKER_TRY(
        const Certificate made,
        sign(
            {name.get(),
             key.get(),
             issuer.get(),
             issuer_key.get(),
             validity,
             {{NID_basic_constraints, "critical,CA:FALSE"},
              {NID_key_usage, "critical,digitalSignature"},
              {NID_ext_key_usage, "serverAuth"},
              {NID_subject_alt_name, fmt::format("DNS:{}", fmt::join(dns_names, ",DNS:"))},
              {NID_subject_key_identifier, "hash"},
              {NID_authority_key_identifier, "keyid"}}}));
    return pair_of(made.get(), key.get());
}

Result<std::string> certify_peer(
    const KeyPair& ca,
    const std::string& request,
    const std::vector<std::string>& uris,
    Validity validity) {
    STOKER_TRY_VOID(check_uris(uris));
    STOKER_TRY(const Request parsed, parse_request(request));
    STOKER_TRY(const Certificate issuer, parse_certificate(ca.certificate));
    STOKER_TRY(const Key issuer_key, parse_key(ca.key));
    STOKER_TRY(const Name name, make_name("stoker-peer"));
    STOKER_TRY(
        const Certificate made,
        sign(
            {name.get(),
             X509_REQ_get0_pubkey(parsed.get()),
             issuer.get(),
             issuer_key.get(),
             validity,
             {{NID_basic_constraints, "critical,CA:FALSE"},
              {NID_key_usage, "critical,digitalSignature"},
              {NID_ext_key_usage, "serverAuth,clientAuth"},
              {NID_subject_alt_name, fmt::format("URI:{}", fmt::join(uris, ",URI:"))},
              {NID_subject_key_identifier, "hash"},
              {NID_authority_key_identifier, "keyid"}}}));
    return certificate_pem(made.get());
}

Result<std::string> cross_sign(
    const std::string& subject, const KeyPair& issuer, Validity validity) {
    STOKER_TRY(const Certificate own, parse_certificate(subject));
    STOKER_TRY(const Certificate issuer_certificate, parse_certificate(issuer.certificate));
    STOKER_TRY(const Key issuer_key, parse_key(issuer.key));
    STOKER_TRY(
        const Certificate made,
        sign(
            {X509_get_subject_name(own.get()),
             X509_get0_pubkey(own.get()),
             issuer_certificate.get(),
             issuer_key.get(),
             validity,
             {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
              {NID_key_usage, "critical,keyCertSign,cRLSign"},
              {NID_subject_key_identifier, "hash"},
              {NID_authority_key_identifier, "keyid"}}}));
    return certificate_pem(made.get());
}

Result<CertificateFacts> read_certificate(std::string_view pem) {
    STOKER_TRY(const Certificate certificate, parse_certificate(pem));
    CertificateFacts facts;
    facts.validity = {
        time_of(X509_get0_notBefore(certificate.get())),
        time_of(X509_get0_notAfter(certificate.get()))};
    std::array<char, 128> name{};
    if (X509_NAME_get_text_by_NID(
            X509_get_subject_name(certificate.get()),
            NID_commonName,
            name.data(),
            static_cast<int>(name.size())) > 0) {
        facts.common_name = name.data();
    }
    facts.is_ca = X509_check_ca(certificate.get()) == 1;
    return facts;
}

Status check_pair(const KeyPair& pair) {
    STOKER_TRY(const Certificate certificate, parse_certificate(pair.certificate));
    STOKER_TRY(const Key key, parse_key(pair.key));
    if (X509_check_private_key(certificate.get(), key.get()) != 1) {
        return fail(
            openssl_error(ErrorCode::kCorruption, "the key does not belong to the certificate"));
    }
    return {};
}

}  // namespace stoker::control
