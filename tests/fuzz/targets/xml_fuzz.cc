// XML from the network: a listing, an S3 error, an answer of a token service.
#include "sidecar/origin/s3_xml.h"
#include "sidecar/origin/sts_answer.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

void run(std::span<const std::byte> input) {
    const std::string_view xml = text_of(input);
    if (const auto page = sidecar::parse_list_page(xml)) {
        for (const domain::ListedObject& object : page->objects) {
            expect(!object.key.empty(), "a listed object has a key");
        }
    }
    if (const auto error = sidecar::parse_s3_error(xml)) {
        expect(error->code.size() <= xml.size(), "an error's code is part of the answer");
    }
    (void)sidecar::parse_sts_credentials(xml);
    (void)sidecar::sts_refusal(403, xml);
}

std::vector<std::string> seeds() {
    return {
        R"(<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>b</Name>)"
        R"(<IsTruncated>true</IsTruncated><Contents><Key>a/&#233;&amp;b</Key><Size>17</Size>)"
        R"(<ETag>&quot;0123456789abcdef0123456789abcdef&quot;</ETag></Contents>)"
        R"(<NextContinuationToken>t</NextContinuationToken></ListBucketResult>)",
        "<Error><Code>NoSuchBucket</Code><Message>gone</Message></Error>",
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
        "<AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey>"
        "<SessionToken>T</SessionToken><Expiration>2026-01-31T12:00:00Z</Expiration>"
        "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"};
}

}  // namespace stoker::fuzz
