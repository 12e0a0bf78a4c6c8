#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/core/spec/validate.h"

// Checks shared by the validation rules of several kinds. Pure.
namespace stoker::control {

// Collects validation errors; `where` is a field path, `what` the message of the CRD's rule.
// Not thread-safe.
class Complaints {
public:
    void unless(bool holds, std::string where, std::string_view what);

    std::vector<FieldError> take();

private:
    std::vector<FieldError> errors_;
};

// RFC 1123: lower-case letters, digits and '-', 1 to 63 of them, no '-' at the ends.
bool is_dns_label(std::string_view text);

// Whether a component of the '/'-separated path is "." or "..".
bool has_dot_part(std::string_view path);

// Whether the path is absolute and normal: "/a/b.c", with letters, digits, '.', '_' and '-' in its
// components, and no component "." or "..".
bool is_plain_path(std::string_view path);

// Whether the directories are equal or one contains the other; read as text, without links.
bool overlap(std::string_view a, std::string_view b);

// Whether the text is "s3://bucket" or "s3://bucket/prefix" with a valid bucket name; any prefix.
bool is_s3_uri(std::string_view uri);

}  // namespace stoker::control
