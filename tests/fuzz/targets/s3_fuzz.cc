// Requests to the S3 endpoint: head, path and query, signature, ranges and conditions, a page of a
// listing.
#include "sidecar/s3/list_objects.h"
#include "sidecar/s3/object_answer.h"
#include "sidecar/s3/verify_signature.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

void run(std::span<const std::byte> input) {
    const std::string_view text = text_of(input);
    const s3::ParsedHead parsed = s3::parse_head(text);
    expect(parsed.bytes <= text.size(), "a head is part of the input");
    if (parsed.state != s3::HeadState::kComplete) {
        return;
    }
    const auto answer = s3::answer_object(parsed.head, {1000, "etag", {}});
    expect(
        !answer || (answer->offset <= 1000 && answer->length <= 1000 - answer->offset),
        "an answer lies inside the object");
    const auto call = s3::parse_call(parsed.head);
    if (!call) {
        return;
    }
    expect(
        s3::verify_signature(*call, {"key", "secret"}, WallTime{}).has_value(),
        "nobody can sign without the secret");
    if (const auto query = s3::parse_list_query(*call)) {
        expect(query->max_keys <= s3::kListKeysMax, "a page is bounded");
    }
}

std::vector<std::string> seeds() {
    return {
        "GET /bucket/key HTTP/1.1\r\nHost: 127.0.0.1:9711\r\nRange: bytes=0-9\r\n"
        "If-None-Match: \"etag\"\r\nx-amz-date: 19700101T000000Z\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=key/19700101/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=00\r\n\r\n",
        "GET /bucket?list-type=2&prefix=a%2F&delimiter=%2F&max-keys=7&continuation-token="
        "stoker-k6162 HTTP/1.1\r\nHost: bucket.localhost\r\n\r\n",
        "PUT /?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=key%2F19700101%2Fr%2Fs3%2F"
        "aws4_request&X-Amz-Date=19700101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host"
        " HTTP/1.1\r\nContent-Length: 3\r\n\r\n"};
}

}  // namespace stoker::fuzz
