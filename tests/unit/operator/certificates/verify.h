#pragma once

#include <ctime>
#include <memory>
#include <string>

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "common/base/clock.h"

namespace stoker::test {

// Verifies the chain (leaf first) against `bundle`, as `openssl verify -x509_strict -purpose
// sslserver -verify_hostname HOST -attime NOW` does: returns "ok" or the reason. An empty `host` is
// not checked.
inline std::string verify(
    const std::string& chain,
    const std::string& bundle,
    const std::string& host,
    WallTime now,
    int purpose = X509_PURPOSE_SSL_SERVER) {
    using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
    const auto read = [](BIO* bio) { return PEM_read_bio_X509(bio, nullptr, nullptr, nullptr); };
    const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(
        X509_STORE_new(), &X509_STORE_free);
    const Bio roots{BIO_new_mem_buf(bundle.data(), static_cast<int>(bundle.size())), &BIO_free};
    while (X509* root = read(roots.get())) {
        X509_STORE_add_cert(store.get(), root);
        X509_free(root);
    }
    const Bio sent{BIO_new_mem_buf(chain.data(), static_cast<int>(chain.size())), &BIO_free};
    const std::unique_ptr<X509, decltype(&X509_free)> leaf(read(sent.get()), &X509_free);
    STACK_OF(X509)* between = sk_X509_new_null();
    while (X509* certificate = read(sent.get())) {
        sk_X509_push(between, certificate);
    }
    X509_STORE_CTX* context = X509_STORE_CTX_new();
    X509_STORE_CTX_init(context, store.get(), leaf.get(), between);
    X509_VERIFY_PARAM* wanted = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_X509_STRICT);
    X509_VERIFY_PARAM_set_purpose(wanted, purpose);
    if (!host.empty()) {
        X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0);
    }
    X509_VERIFY_PARAM_set_time(
        wanted,
        static_cast<std::time_t>(
            std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count()));
    const bool good = X509_verify_cert(context) == 1;
    const std::string answer =
        good ? "ok" : X509_verify_cert_error_string(X509_STORE_CTX_get_error(context));
    X509_STORE_CTX_free(context);
    sk_X509_pop_free(between, X509_free);
    return answer;
}

}  // namespace stoker::test
