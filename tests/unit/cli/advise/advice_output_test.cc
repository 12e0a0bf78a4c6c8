#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/advise/advise_report.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/cli/kubectl_stoker/golden.h"
#include "tests/unit/sidecar/advise/traces.h"

namespace stoker::cli {
namespace {

using testing::HasSubstr;

constexpr std::size_t kColumnsMax = 100;

advise::Advice advice_of(const advise::Trace& trace, const std::vector<std::string_view>& flags) {
    AdviseOptions options;
    EXPECT_TRUE(parse_flags({advise_flags(options)}, flags).has_value());
    auto advice = advise::advise(trace, options.question);
    EXPECT_TRUE(advice.has_value());
    return *std::move(advice);
}

advise::Trace epochs(std::uint32_t count) {
    Prng prng{1};
    advise::TraceText text;
    text.shuffle(1000, count, prng, 2);
    return advise::trace_of(text.text() + "garbage\n");
}

void expect_page(const std::string& name, const std::string& text) {
    expect_golden(name, text);
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), kColumnsMax) << line;
        EXPECT_FALSE(line.ends_with(' ')) << line;
    }
}

TEST(AdviceOutput, ShuffledEpochsWithTimes) {
    const auto advice = advice_of(
        epochs(3),
        {"--window=200Ki",
         "--batch=8",
         "--origin-bandwidth=1Mi",
         "--origin-latency=20ms",
         "--compute-rate=5000",
         "--cache=300Ki"});
    expect_page("shuffled.txt", advice_text(advice));
    expect_golden("shuffled.json", advice_json(advice));
}

TEST(AdviceOutput, SkewedDrawsWithoutTimes) {
    Prng prng{1};
    advise::TraceText text;
    for (int i = 0; i < 4000; ++i) {
        text.read(static_cast<std::uint32_t>(prng.below(1 + prng.below(1000))));
    }
    expect_page("skewed.txt", advice_text(advice_of(text.trace(), {"--window=20Ki"})));
}

TEST(AdviceOutput, OnePass) {
    expect_page("one-pass.txt", advice_text(advice_of(epochs(1), {"--window=20Ki"})));
}

TEST(AdviceOutput, ComputeBound) {
    expect_page(
        "compute-bound.txt",
        advice_text(advice_of(
            epochs(3), {"--window=200Ki", "--origin-bandwidth=1Gi", "--compute-rate=100"})));
}

TEST(AdviceOutput, SaysThatTimeIsNotKnown) {
    const auto advice = advice_of(epochs(3), {"--window=200Ki", "--origin-bandwidth=1Gi"});
    EXPECT_THAT(advice_text(advice), HasSubstr("not known whether it saves time"));
    EXPECT_THAT(advice_json(advice), HasSubstr(R"("verdict":"timeUnknown")"));
}

TEST(AdviceOutput, SaysThatLookAheadIsEnough) {
    const auto advice = advice_of(
        epochs(3),
        {"--window=200Ki", "--origin-latency=30ms", "--compute-rate=500", "--workers=1"});
    EXPECT_THAT(advice_text(advice), HasSubstr("look-ahead alone is enough: an epoch takes"));
    EXPECT_THAT(advice_text(advice), HasSubstr(">        0B "));
    EXPECT_THAT(advice_json(advice), HasSubstr(R"("verdict":"lookAheadIsEnough")"));
}

TEST(AdviseFromTrace, ReadsAFile) {
    const test::TempFolder folder;
    AdviseOptions options;
    options.trace_path = folder.path() + "/trace";
    std::ofstream{options.trace_path} << "1 a 10\n2 b 10\n3 a 10\n4 b 10\n";
    const auto advice = advise_from_trace(options);
    ASSERT_TRUE(advice) << advice.error().message;
    EXPECT_EQ(advice->shape.reads, 4U);
}

TEST(AdviseFromTrace, ErrorsNameTheFile) {
    AdviseOptions options;
    options.trace_path = "/nonexistent/trace";
    EXPECT_THAT(advise_from_trace(options).error().message, HasSubstr("/nonexistent/trace cannot"));
    const test::TempFolder folder;
    options.trace_path = folder.path() + "/empty";
    std::ofstream{options.trace_path}.close();
    EXPECT_THAT(advise_from_trace(options).error().message, HasSubstr("empty: the trace has no"));
    options.trace_path = folder.path();
    EXPECT_THAT(advise_from_trace(options).error().message, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace stoker::cli
