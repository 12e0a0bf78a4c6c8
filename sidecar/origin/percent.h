#pragma once

#include <optional>
#include <string>
#include <string_view>

// Percent-encoding as S3 signatures require it (RFC 3986, section 2). Pure.
namespace stoker::sidecar {

// Keeps A-Z a-z 0-9 - . _ ~ and, with `keep_slash`, '/'; every other byte becomes %XX in upper-case
// hex.
std::string percent_encode(std::string_view text, bool keep_slash);

// nullopt when a '%' is not followed by two hex digits. `plus_is_space`: form encoding, which S3
// uses in listings.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

}  // namespace stoker::sidecar
