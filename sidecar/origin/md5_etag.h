#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "common/http/headers.h"

namespace stoker::sidecar {

// Whether `etag` is the MD5 of the object's bytes: 32 hex digits without a part count, and not of
// an object that the server encrypts with a key of KMS or of the customer (the answer's `headers`
// say so), whose ETag is any number. The Python client's origin/s3.py has the same rule. Pure.
bool is_md5_etag(std::string_view etag, const http::Headers& headers);

// Whether `etag` is the MD5 of `bytes`. Pure.
bool matches_md5_etag(std::span<const std::byte> bytes, std::string_view etag);

}  // namespace stoker::sidecar
