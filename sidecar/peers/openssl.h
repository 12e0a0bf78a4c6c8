#pragma once

#include <memory>
#include <string_view>

#include <openssl/ssl.h>

#include "common/base/error.h"

// Owning pointers for OpenSSL objects, and OpenSSL's errors, for the files of this folder.
namespace stoker::sidecar {

// A deleter that calls an OpenSSL function to free its argument.
template <auto Free>
struct OpensslFree {
    template <class T>
    void operator()(T* object) const {
        Free(object);
    }
};

using BioPtr = std::unique_ptr<BIO, OpensslFree<&BIO_free>>;
using PrivateKeyPtr = std::unique_ptr<EVP_PKEY, OpensslFree<&EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, OpensslFree<&X509_free>>;
using SslPtr = std::unique_ptr<SSL, OpensslFree<&SSL_free>>;

// "WHAT: the first error in this thread's queue of OpenSSL errors". Empties the queue.
Error openssl_error(ErrorCode code, std::string_view what);

// Reads `pem` without copying it; `pem` must outlive the result.
BioPtr bio_of(std::string_view pem);

}  // namespace stoker::sidecar
