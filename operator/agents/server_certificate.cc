#include "operator/agents/server_certificate.h"

#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace stoker::control {

namespace {

std::string last_openssl_words() {
    char text[256] = {};
    ERR_error_string_n(ERR_get_error(), text, sizeof text);
    ERR_clear_error();
    return text;
}

Status readable(const std::string& path) {
    if (!std::ifstream(path).good()) {
        return fail(ErrorCode::kNotFound, fmt::format("cannot read {}", path));
    }
    return {};
}

}  // namespace

Result<CertificateFiles> find_certificate(const std::string& directory) {
    const CertificateFiles files{directory + "/tls.crt", directory + "/tls.key"};
    STOKER_TRY_VOID(readable(files.certificate));
    STOKER_TRY_VOID(readable(files.key));
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
        SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
    if (context == nullptr) {
        return fail(ErrorCode::kInternal, last_openssl_words());
    }
    if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
        return fail(
            ErrorCode::kCorruption, fmt::format("{}: {}", files.certificate, last_openssl_words()));
    }
    if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
        return fail(ErrorCode::kCorruption, fmt::format("{}: {}", files.key, last_openssl_words()));
    }
    return files;
}

Result<std::string> read_ca(const std::string& directory) {
    const std::string path = directory + "/ca.crt";
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file.good() || text.str().empty()) {
        return fail(ErrorCode::kNotFound, fmt::format("cannot read {}", path));
    }
    return text.str();
}

}  // namespace stoker::control
