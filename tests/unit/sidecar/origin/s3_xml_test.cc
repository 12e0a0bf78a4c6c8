#include "sidecar/origin/s3_xml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using domain::ListedObject;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A page as Amazon sends it, shortened.
constexpr std::string_view kPage = R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>quotes</Name>
  <Prefix>cats%2F</Prefix><KeyCount>2</KeyCount><MaxKeys>2</MaxKeys>
  <EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
  <NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <Contents><Key>cats/a+b%2Bc%25.jpg</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>
    <ETag>&quot;70ee1738b6b21e2c8a43f3a5ab0eee71&quot;</ETag><Size>434234</Size>
    <Owner xsi:type="CanonicalUser" xmlns:xsi='x'><ID>75aa</ID></Owner>
    <StorageClass>STANDARD</StorageClass></Contents>
  <Contents><Key>cats/%E2%98%83</Key><ETag>"x-1"</ETag><Size>0</Size></Contents>
  <CommonPrefixes><Prefix>photos/</Prefix></CommonPrefixes>
</ListBucketResult>
)";

TEST(S3Xml, ReadsAPageOfAListing) {
    const auto page = parse_list_page(kPage);
    ASSERT_TRUE(page.has_value()) << page.error().message;
    EXPECT_THAT(
        page->objects,
        ElementsAre(
            ListedObject{"cats/a b+c%.jpg", 434234, "70ee1738b6b21e2c8a43f3a5ab0eee71"},
            ListedObject{"cats/\u2603", 0, "x-1"}));
    EXPECT_EQ(page->next_token, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
}

TEST(S3Xml, TakesKeysLiterallyWithoutEncodingType) {
    const auto page = parse_list_page(
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a+b%20&amp;&#x2603;&#65;"
        "</Key><Size>1</Size><ETag>e</ETag></Contents></ListBucketResult>");
    ASSERT_TRUE(page.has_value()) << page.error().message;
    EXPECT_THAT(page->objects, ElementsAre(ListedObject{"a+b%20&\u2603A", 1, "e"}));
    EXPECT_EQ(page->next_token, "");
}

TEST(S3Xml, ReadsAnEmptyBucket) {
    const auto page = parse_list_page(
        "<ListBucketResult><Name>b</Name><Prefix/><IsTruncated>false</IsTruncated>"
        "</ListBucketResult>");
    ASSERT_TRUE(page.has_value()) << page.error().message;
    EXPECT_THAT(page->objects, IsEmpty());
}

TEST(S3Xml, RefusesIncompleteListings) {
    const std::string head = "<ListBucketResult><IsTruncated>false</IsTruncated>";
    const std::string tail = "</ListBucketResult>";
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "it is empty"},
        {"<html><body>Bad gateway</body></html>", "not a ListBucketResult"},
        {"<Error><Code>X</Code></Error>", "not a ListBucketResult"},
        {head, "no element found"},
        {head + "<Contents><Key>a", "no element found"},
        {head + "</Other>", "mismatched tag"},
        {head + tail + "<more/>", "junk after document element"},
        {"<ListBucketResult></ListBucketResult>", "not a ListBucketResult"},
        {"<ListBucketResult><Name>b</Name></ListBucketResult>", "no IsTruncated"},
        {"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "disagree"},
        {head + "<NextContinuationToken>t</NextContinuationToken>" + tail, "disagree"},
        {head + "<Contents><Size>1</Size></Contents>" + tail, "without key or size"},
        {head + "<Contents><Key>a</Key></Contents>" + tail, "without key or size"},
        {head + "<Contents><Key>a</Key><Size>-1</Size></Contents>" + tail, "without key or size"},
        {head + "<Contents><Key>a</Key><Size>1x</Size></Contents>" + tail, "without key or size"},
        {head + "<EncodingType>url</EncodingType><Contents><Key>%4</Key><Size>1</Size></Contents>" +
             tail,
         "badly encoded"},
        {head + "<Name>&unknown;</Name>" + tail, "undefined entity"},
        {head + "<Name>&#0;</Name>" + tail, "invalid character number"},
        {head + "<Name>&#xD800;</Name>" + tail, "invalid character number"},
        {head + "<Name>&#x110000;</Name>" + tail, "invalid character number"},
        {head + "<Name>&never ends" + tail, "not well-formed"},
        {head + "<Name a>x</Name>" + tail, "not well-formed"},
        {head + "<Name a=\"x>x</Name>" + tail, "not well-formed"},
        {head + "<Name>\xff</Name>" + tail, "not well-formed"},
        {"<!DOCTYPE x [<!ENTITY a \"b\">]>" + head + tail, "a DOCTYPE"},
        {"<!DOCTYPE x SYSTEM \"http://other/x.dtd\">" + head + tail, "a DOCTYPE"},
        {"<?xml never closed", "unclosed token"},
        {head + "<A><A><A><A><A><A><A><A></A></A></A></A></A></A></A></A>" + tail, "too deep"},
    };
    for (const auto& [xml, want] : cases) {
        SCOPED_TRACE(xml);
        const auto page = parse_list_page(xml);
        ASSERT_FALSE(page.has_value());
        EXPECT_EQ(page.error().code, ErrorCode::kUnavailable);
        EXPECT_THAT(page.error().message, HasSubstr(want));
    }
}

TEST(S3Xml, ReadsErrors) {
    const auto error = parse_s3_error(
        "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket "
        "does "
        "not exist</Message><BucketName>b</BucketName><RequestId>4442</RequestId></Error>");
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, "NoSuchBucket");
    EXPECT_EQ(error->message, "The specified bucket does not exist");
    for (const auto* other : {"", "<Error></Error>", "<html></html>", "<Error><Code>X</Code>"}) {
        EXPECT_FALSE(parse_s3_error(other).has_value()) << other;
    }
}

TEST(S3Xml, SurvivesEveryMutilationOfAPage) {
    Prng random{test::seed()};
    for (std::size_t length = 0; length < kPage.size(); ++length) {
        EXPECT_EQ(parse_list_page(kPage.substr(0, length)).has_value(), length == kPage.size() - 1)
            << length << ": only the line end may be missing";
    }
    for (int round = 0; round < 20'000; ++round) {
        std::string damaged{kPage};
        for (int i = 0; i < 3; ++i) {
            damaged[random.below(damaged.size())] = "<>&;\"/=%x\0 "[random.below(11)];
        }
        const auto page = parse_list_page(damaged);  // must neither crash nor read outside
        EXPECT_TRUE(page.has_value() || !page.error().message.empty());
    }
}

}  // namespace
}  // namespace stoker::sidecar
