#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/core/spec/validate.h"

// Checks that the rules of several kinds share. Pure.
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

// Whether the path is absolute and normal: "/a/b.c", with letters, digits, '.', '_' and '-' in its
// parts, and no part "." or "..".
bool is_plain_path(std::string_view path);

// Whether one of the two directories is the other or lies in it, however often they repeat '/'.
bool overlap(std::string_view a, std::string_view b);

// Whether it begins with http:// or https://.
bool is_http_url(std::string_view url);

// "s3://bucket" or "s3://bucket/prefix" with a bucket name that S3 allows; any prefix.
bool is_s3_uri(std::string_view uri);

}  // namespace stoker::control
