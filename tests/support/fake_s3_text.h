#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// The spellings of the S3 protocol that the fake server needs. Pure.
namespace stoker::test {

using QueryMap = std::map<std::string, std::string>;

std::string md5_hex(std::string_view bytes);
std::string crc32c_base64(std::string_view bytes);

// As keys stand in a listing with encoding-type=url: a space is '+', a slash stays.
std::string form_encode(std::string_view text);

// The decoded query of a request target.
QueryMap parse_query(std::string_view target);

// The S3 error code that usually goes with a status, and the words that go with a code.
const char* default_code(int status);
const char* words_for(std::string_view code);

// "bytes=3-9" of an object of `size` bytes: first byte and length; nullopt when there is none or it
// lies outside.
std::optional<std::pair<std::size_t, std::size_t>> parse_range(
    std::string_view text, std::size_t size);

}  // namespace stoker::test
