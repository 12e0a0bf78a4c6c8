#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// Parsing and encoding of the S3 protocol for the fake server. Pure.
namespace stoker::test {

using QueryMap = std::map<std::string, std::string>;

std::string md5_hex(std::string_view bytes);
std::string crc32c_base64(std::string_view bytes);

// Encodes a key as in a listing with encoding-type=url: a space becomes '+', a slash stays.
std::string form_encode(std::string_view text);

// The decoded query of a request target.
QueryMap parse_query(std::string_view target);

// The usual S3 error code of a status, and the message of a code.
const char* default_code(int status);
const char* words_for(std::string_view code);

// "bytes=3-9" of an object of `size` bytes: first byte and length; nullopt: no range, or outside the
// object.
std::optional<std::pair<std::size_t, std::size_t>> parse_range(
    std::string_view text, std::size_t size);

}  // namespace stoker::test
