#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/domain/listing.h"

// Parsers of an S3 server's two XML documents: a page of ListObjectsV2, and an error (a token
// service sends it, too). Strict: no DOCTYPE, no CDATA, no processing instructions except the
// declaration, bounded depth. Pure.
namespace stoker::sidecar {

struct ListPage {
    std::vector<domain::ListedObject> objects{};  // full keys, ETags without quotes
    std::string next_token{};                     // empty: this was the last page
};

// kUnavailable (retryable: truncated, or a proxy's page): not a well-formed ListBucketResult with
// every object complete; the message says what is wrong and where.
Result<ListPage> parse_list_page(std::string_view xml);

struct S3Error {
    std::string code;     // "NoSuchBucket"
    std::string message;  // "The specified bucket does not exist"
};

// An error document of S3, or of the token service (in an ErrorResponse). nullopt: neither.
std::optional<S3Error> parse_s3_error(std::string_view xml);

// Decodes percent-encoded text. nullopt: a '%' is not followed by two hex digits. `plus_is_space`:
// form encoding, which S3 uses in listings.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

}  // namespace stoker::sidecar
