#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/core/validate.h"

// What the rules of all kinds are made of. Pure.
namespace stoker::control {

// Gathers complaints; `where` is a path, `what` the sentence of the CRD's rule. One owner, not
// thread-safe.
class Complaints {
public:
    void unless(bool holds, std::string where, std::string_view what);

    std::vector<FieldError> take();

private:
    std::vector<FieldError> errors_;
};

// RFC 1123: lower-case letters, digits and '-', 1 to 63 of them, no '-' at the ends.
bool is_dns_label(std::string_view text);

// Whether a part of the '/'-separated path is "." or "..".
bool has_dot_part(std::string_view path);

// "s3://bucket" or "s3://bucket/prefix" with a bucket name that S3 allows; any prefix.
bool is_s3_uri(std::string_view uri);

}  // namespace stoker::control
