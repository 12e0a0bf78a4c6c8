#include "sidecar/advise/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/advise/traces.h"

namespace stoker::advise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kLogLine =
    "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be bucket "
    "[06/Feb/2019:00:00:38 +0000] {} arn:aws:iam::1:user/u 3E57427F3EXAMPLE {} {} "
    "\"GET /bucket/{} HTTP/1.1\" {} - {} {} 70 10 \"-\" \"aws sdk\" -\n";

std::string log_line(
    const std::string& host,
    const std::string& operation,
    const std::string& key,
    int status,
    const std::string& sent,
    const std::string& size) {
    return fmt::format(fmt::runtime(kLogLine), host, operation, key, key, status, sent, size);
}

TEST(TraceReader, ReadsPlainLines) {
    const Trace trace = trace_of("1.5 a/1.jpg 100\n2 b 200 3 1\n2.5\ta/1.jpg\t90\r\n");
    ASSERT_EQ(trace.reads.size(), 3U);
    EXPECT_THAT(trace.sizes, ElementsAre(100, 200));
    EXPECT_EQ(trace.reads[2].sample, trace.reads[0].sample);
    EXPECT_EQ(trace.reads[1].epoch, 3U);
    EXPECT_EQ(trace.readers, 2U);
    EXPECT_FALSE(trace.has_epochs);
}

TEST(TraceReader, HeaderNamesTheColumns) {
    const Trace trace = trace_of(
        "rank,key,pid,time,offset,bytes,epoch\n0,\"a, b\",17,1,0,10,0\n0,\"a, b\",17,2,10,10,0\n");
    EXPECT_EQ(trace.sizes.size(), 2U);
    EXPECT_EQ(trace.partial_reads, 1U);
    EXPECT_TRUE(trace.has_epochs);
    EXPECT_THAT(complaint("key,size\na,1\n"), HasSubstr("time, key and bytes"));
}

TEST(TraceReader, AKeyCalledKeyIsNoHeader) {
    EXPECT_EQ(trace_of("1 key 100\n").sizes.size(), 1U);
}

TEST(TraceReader, SortsByTime) {
    const Trace trace = trace_of("3 c 1\n1 a 1\n2 b 1\n");
    EXPECT_EQ(trace.reads[0].sample, 1U);
    EXPECT_EQ(trace.reads[2].sample, 0U);
}

TEST(TraceReader, ReadsAnAccessLog) {
    const Trace trace = trace_of(
        log_line("10.0.0.1", "REST.GET.OBJECT", "a%2520b", 200, "500", "500") +
        log_line("10.0.0.1", "REST.PUT.OBJECT", "c", 200, "-", "70") +
        log_line("10.0.0.2", "REST.GET.OBJECT", "c", 404, "200", "-") +
        log_line("10.0.0.2", "REST.GET.OBJECT", "a%2520b", 200, "500", "500"));
    EXPECT_TRUE(trace.is_access_log);
    EXPECT_EQ(trace.reads.size(), 2U);
    EXPECT_EQ(trace.sizes.size(), 1U);
    EXPECT_EQ(trace.other_requests, 2U);
    EXPECT_EQ(trace.readers, 2U);
    EXPECT_EQ(trace.reads[0].seconds, 1549411238);
}

TEST(TraceReader, PartsInALogCountAsReadInOrder) {
    std::string text;
    for (int pass = 0; pass < 2; ++pass) {
        for (const char* bytes : {"400", "400", "200"}) {
            text += log_line("10.0.0.1", "REST.GET.OBJECT", "big", 206, bytes, "1000");
        }
    }
    const Trace trace = trace_of(text);
    EXPECT_THAT(trace.sizes, ElementsAre(400, 400, 200));
    EXPECT_EQ(trace.reads[3].sample, trace.reads[0].sample);
}

// The first download ends early, and later ones read the object in parts or as a whole.
TEST(TraceReader, AnAbortedDownloadIsNoPart) {
    std::string text = log_line("10.0.0.1", "REST.GET.OBJECT", "big", 200, "300", "1000");
    for (int pass = 0; pass < 2; ++pass) {
        text += log_line("10.0.0.1", "REST.GET.OBJECT", "big", 206, "600", "1000");
        text += log_line("10.0.0.1", "REST.GET.OBJECT", "big", 206, "400", "1000");
    }
    text += log_line("10.0.0.1", "REST.GET.OBJECT", "big", 206, "600", "1000");
    text += log_line("10.0.0.1", "REST.GET.OBJECT", "big", 200, "1000", "1000");
    text += log_line("10.0.0.1", "REST.GET.OBJECT", "big", 206, "600", "1000");
    EXPECT_THAT(trace_of(text).sizes, ElementsAre(1000, 400));
}

TEST(TraceReader, AKeyMayHaveCommas) {
    for (const std::string line : {"0 dir,0.jpg 10\n", "0 \"dir, 0.jpg\" 10\n"}) {
        const Trace trace = trace_of(line + "1 b 20\n");
        EXPECT_THAT(trace.sizes, ElementsAre(10, 20)) << line;
        EXPECT_EQ(trace.refused.count, 0U);
    }
    EXPECT_THAT(trace_of("0, a, 10\n1,b,20\n").sizes, ElementsAre(10, 20));
}

TEST(TraceReader, MessagesHaveNoControlBytes) {
    EXPECT_EQ(
        trace_of("1 a 10\n2 b x\x1b]0;pwned\x07\xc2\x9b\n").refused.first_reason,
        "bytes is 'x?]0;pwned?\?\?'");
}

TEST(TraceReader, RefusesAbsurdSums) {
    std::string text;
    for (int i = 0; i < 1025; ++i) {
        text += fmt::format("{} k{} {}\n", i, i, 1ULL << 50U);
    }
    EXPECT_THAT(complaint(text), HasSubstr("more than 1024Pi together"));
}

TEST(TraceReader, CountsLinesThatAreNoReads) {
    const Trace trace = trace_of("# made by hand\n\n1 a 10\n2 b -5\n3 c 10\n4 d");
    EXPECT_EQ(trace.reads.size(), 2U);
    EXPECT_EQ(trace.refused.count, 2U);
    EXPECT_EQ(trace.refused.first_line, 4U);
    EXPECT_EQ(trace.refused.first_reason, "bytes is '-5'");
}

TEST(TraceReader, RefusesOtherFiles) {
    EXPECT_THAT(complaint(""), HasSubstr("no reads"));
    EXPECT_THAT(complaint("GIF89a\nxyz\n"), HasSubstr("2 lines are no reads, the first is line 1"));
    EXPECT_THAT(complaint("nan a 1\ninf b 1\n1e999 c 1\n"), HasSubstr("3 lines"));
    EXPECT_THAT(complaint("1 a 99999999999999999999\n"), HasSubstr("bytes is"));
    EXPECT_THAT(complaint("1 a 1125899906842625\n"), HasSubstr("bytes is"));
}

TEST(TraceReader, ALineMayNotBeTooLong) {
    TraceReader reader{{.line_bytes_max = 100}};
    const std::string key(1000, 'k');
    for (const char c : "1 a 10\n1 " + key + " 10\n2 b 10\n3 " + key) {
        ASSERT_TRUE(reader.feed({&c, 1}));
    }
    const auto trace = std::move(reader).finish();
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->reads.size(), 2U);
    EXPECT_EQ(trace->refused.count, 2U);
}

TEST(TraceReader, LimitsAreErrors) {
    TraceReader few{{.reads_max = 2}};
    EXPECT_EQ(few.feed("1 a 1\n1 b 1\n1 c 1\n").error().code, ErrorCode::kResourceExhausted);
    TraceReader alone{{.readers_max = 1}};
    EXPECT_EQ(alone.feed("1 a 1 0 0\n1 b 1 0 1\n").error().code, ErrorCode::kResourceExhausted);
}

TEST(TraceReader, PiecesDoNotMatter) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(50, 3, prng, 2);
    const Trace whole = text.trace();
    TraceReader reader;
    std::string_view rest = text.text();
    while (!rest.empty()) {
        const std::size_t size = std::min<std::size_t>(1 + prng.below(40), rest.size());
        ASSERT_TRUE(reader.feed(rest.substr(0, size)));
        rest.remove_prefix(size);
    }
    const auto pieces = std::move(reader).finish();
    ASSERT_TRUE(pieces);
    ASSERT_EQ(pieces->reads.size(), whole.reads.size());
    for (std::size_t i = 0; i < whole.reads.size(); ++i) {
        EXPECT_EQ(pieces->reads[i].sample, whole.reads[i].sample);
        EXPECT_EQ(pieces->reads[i].reader, whole.reads[i].reader);
    }
}

// Random bytes give a trace or an error, and every read names a sample and a reader.
TEST(TraceReader, TakesAnyBytes) {
    Prng prng{test::seed()};
    constexpr std::string_view kLetters = "0123456789.,- \t\n\"[]#akey/:+\x01\xff";
    for (int round = 0; round < 2000; ++round) {
        std::string text =
            round % 2 == 0 ? "" : log_line("h", "REST.GET.OBJECT", "k", 200, "5", "9");
        for (std::uint64_t i = prng.below(200); i > 0; --i) {
            text.insert(prng.below(text.size() + 1), 1, kLetters[prng.below(kLetters.size())]);
        }
        TraceReader reader;
        if (!reader.feed(text)) {
            continue;
        }
        if (const auto trace = std::move(reader).finish()) {
            for (const Read& read : trace->reads) {
                EXPECT_LT(read.sample, trace->sizes.size()) << text;
                EXPECT_LT(read.reader, trace->readers) << text;
            }
        }
    }
}

TEST(TraceReader, AMillionLinesTakeBoundedMemory) {
    TraceReader reader;
    const std::string long_name(200, 'x');
    for (int i = 0; i < 1'000'000; ++i) {
        ASSERT_TRUE(reader.feed(fmt::format("{} {}/{} 1000\n", i, long_name, i % 100'000)));
    }
    const auto trace = std::move(reader).finish();
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->sizes.size(), 100'000U);
    // The reader keeps no keys, which alone would take 20 MB.
    EXPECT_EQ(trace->reads.capacity() * sizeof(Read), std::size_t{24} << 20U);
}

}  // namespace
}  // namespace stoker::advise
