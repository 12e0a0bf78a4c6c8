#pragma once

#include <memory>
#include <string>

#include <openssl/evp.h>

namespace stoker::bench {

struct TokenPod {
    std::string ns;
    std::string pod;
    std::string uid;
    std::string node;
};

// Issues ServiceAccount tokens as kube-apiserver does (RS256, 2048 bits) and answers for them.
// Thread-safe.
class TokenMaker {
public:
    TokenMaker();

    // A token of audience "stoker.dev", valid for an hour, bound to that pod.
    [[nodiscard]] std::string make(const TokenPod& pod) const;

    // The answer to a TokenReview of a token that make() returned.
    [[nodiscard]] std::string review(const std::string& token) const;

    // The page of the issuer's discovery at this path; "" if it has none.
    [[nodiscard]] std::string discovery(const std::string& path) const;

private:
    struct Free {
        void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    };

    std::unique_ptr<EVP_PKEY, Free> key_;
};

}  // namespace stoker::bench
