#include "sidecar/peers/openssl.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>

namespace stoker::sidecar {

Error openssl_error(ErrorCode code, std::string_view what) {
    const unsigned long number = ERR_get_error();
    ERR_clear_error();
    const char* reason = number == 0 ? nullptr : ERR_reason_error_string(number);
    return {code, fmt::format("{}: {}", what, reason == nullptr ? "no reason given" : reason)};
}

BioPtr bio_of(std::string_view pem) {
    return BioPtr{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
}

}  // namespace stoker::sidecar
