#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/domain/manifest.h"

// The two XML documents that an S3 server sends us: a page of ListObjectsV2, and an error, which a
// token service sends, too. A strict reader of exactly these: no DOCTYPE, no CDATA, no processing
// instructions but the declaration, bounded depth. Pure.
namespace stoker::sidecar {

struct ListPage {
    std::vector<domain::ListedObject> objects{};  // full keys, ETags without quotes
    std::string next_token{};                     // empty: this was the last page
};

// kUnavailable (it may pass: an answer cut short or a proxy's page): not a well-formed
// ListBucketResult with every object complete; the message says what is wrong and where.
Result<ListPage> parse_list_page(std::string_view xml);

struct S3Error {
    std::string code;     // "NoSuchBucket"
    std::string message;  // "The specified bucket does not exist"
};

// An error document of S3, or of the token service (in an ErrorResponse). nullopt: neither.
std::optional<S3Error> parse_s3_error(std::string_view xml);

}  // namespace stoker::sidecar
