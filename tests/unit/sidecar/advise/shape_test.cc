#include "sidecar/advise/shape.h"

#include <numeric>

#include <gtest/gtest.h>

#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/advise/traces.h"

namespace stoker::advise {
namespace {

TEST(Shape, FindsShuffledEpochs) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 4, prng);
    const Shape shape = describe(text.trace());
    EXPECT_EQ(shape.pattern, Pattern::kEachOnce);
    EXPECT_FALSE(shape.same_order);
    EXPECT_NEAR(shape.epochs, 4, 0.01);
    EXPECT_EQ(shape.dataset_bytes, Bytes{1'000'000});
    EXPECT_NEAR(shape.reads_per_second(), 1000, 1);
}

TEST(Shape, FindsEpochsThatRanksShare) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 3, prng, 4);
    const Shape shape = describe(text.trace());
    EXPECT_EQ(shape.pattern, Pattern::kEachOnce);
    EXPECT_FALSE(shape.each_reads_all);
    EXPECT_EQ(shape.readers, 4U);
    EXPECT_NEAR(shape.epochs, 3, 0.01);
}

TEST(Shape, FindsReadersThatEachReadAll) {
    Prng prng{test::seed()};
    TraceText text;
    for (int epoch = 0; epoch < 2; ++epoch) {
        const auto first = shuffled(500, prng);
        const auto second = shuffled(500, prng);
        for (std::size_t i = 0; i < 500; ++i) {
            text.read(first[i], 0);
            text.read(second[i], 1);
        }
    }
    const Shape shape = describe(text.trace());
    EXPECT_EQ(shape.pattern, Pattern::kEachOnce);
    EXPECT_TRUE(shape.each_reads_all);
    EXPECT_NEAR(shape.epochs, 2, 0.01);
}

TEST(Shape, AStrayReadHidesNoEpochs) {
    Prng prng{test::seed()};
    TraceText text;
    for (int epoch = 0; epoch < 2; ++epoch) {
        const auto first = shuffled(500, prng);
        const auto second = shuffled(500, prng);
        for (std::size_t i = 0; i < 500; ++i) {
            text.read(first[i], 0);
            text.read(second[i], 1);
        }
    }
    text.read(7, 2);
    const Trace trace = text.trace();
    const Shape shape = describe(trace);
    EXPECT_EQ(shape.pattern, Pattern::kEachOnce);
    EXPECT_TRUE(shape.each_reads_all);
    EXPECT_EQ(by_reader(trace, shape, 48).size(), 2U);
}

TEST(Shape, FindsEpochsThatDropTheLastBatch) {
    Prng prng{test::seed()};
    TraceText text;
    for (int epoch = 0; epoch < 8; ++epoch) {
        const auto order = shuffled(1000, prng);
        std::for_each(order.begin(), order.end() - 40, [&](auto sample) { text.read(sample); });
    }
    const Shape shape = describe(text.trace());
    EXPECT_EQ(shape.pattern, Pattern::kEachOnce);
    EXPECT_NEAR(shape.epochs, 8, 0.01);
}

TEST(Shape, FindsAFixedOrder) {
    TraceText text;
    for (int i = 0; i < 3000; ++i) {
        text.read(i % 1000);
    }
    EXPECT_TRUE(describe(text.trace()).same_order);
}

TEST(Shape, FindsOnePass) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 1, prng);
    EXPECT_EQ(describe(text.trace()).pattern, Pattern::kOnePass);
}

TEST(Shape, TellsUniformFromSkewedDraws) {
    Prng prng{test::seed()};
    TraceText uniform;
    TraceText skewed;
    for (int i = 0; i < 5000; ++i) {
        uniform.read(static_cast<std::uint32_t>(prng.below(1000)));
        skewed.read(static_cast<std::uint32_t>(prng.below(1 + prng.below(1000))));
    }
    EXPECT_EQ(describe(uniform.trace()).pattern, Pattern::kWithReplacement);
    const Shape shape = describe(skewed.trace());
    EXPECT_EQ(shape.pattern, Pattern::kSkewed);
    EXPECT_GT(shape.hottest_share, 0.2);
}

TEST(ByReader, KeepsEveryReadInItsEpoch) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 3, prng, 2);
    const Trace trace = text.trace();
    const auto readers = by_reader(trace, describe(trace), 48);
    ASSERT_EQ(readers.size(), 2U);
    for (const auto& epochs : readers) {
        ASSERT_EQ(epochs.size(), 3U);
        for (const auto& epoch : epochs) {
            EXPECT_EQ(epoch.size(), 500U);
        }
    }
}

TEST(ByReader, FoldsReadersBeyondTheLimit) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 2, prng, 5);
    const Trace trace = text.trace();
    const auto readers = by_reader(trace, describe(trace), 2);
    ASSERT_EQ(readers.size(), 2U);
    EXPECT_EQ(readers[0][0].size() + readers[0][1].size(), 1200U);
    EXPECT_EQ(readers[1][0].size() + readers[1][1].size(), 800U);
}

TEST(ByReader, RecordedEpochsCount) {
    const Trace trace = trace_of("1 a 10 7 0\n2 b 10 7 0\n3 a 10 9 0\n");
    const auto readers = by_reader(trace, describe(trace), 48);
    ASSERT_EQ(readers[0].size(), 3U);
    EXPECT_EQ(readers[0][0].size(), 2U);
    EXPECT_TRUE(readers[0][1].empty());
    EXPECT_EQ(readers[0][2].size(), 1U);
}

}  // namespace
}  // namespace stoker::advise
