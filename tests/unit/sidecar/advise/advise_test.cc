#include "sidecar/advise/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/advise/traces.h"

namespace stoker::advise {
namespace {

using testing::HasSubstr;

// A window that is small beside the traces below.
Question question() {
    Question question;
    question.window = kib(20);
    question.batch = 8;
    return question;
}

Advice advice_of(const Trace& trace, const Question& question) {
    auto advice = advise(trace, question);
    EXPECT_TRUE(advice.has_value());
    return *std::move(advice);
}

double ratio(Bytes a, Bytes b) {
    return static_cast<double>(a.count()) / static_cast<double>(b.count());
}

TEST(Advise, ShuffledEpochsCostTheClosedForm) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(2000, 4, prng);
    const Advice advice = advice_of(text.trace(), question());
    EXPECT_EQ(advice.without.origin_bytes, Bytes{8'000'000});
    for (const SizeResult& size : advice.curve) {
        EXPECT_NEAR(
            ratio(size.keep.origin_bytes, Bytes{2'000'000}), 1 + 3 * (1 - size.share), 0.02);
        EXPECT_GE(size.lru.origin_bytes, size.keep.origin_bytes - Bytes{20'000});
    }
    EXPECT_EQ(advice.verdict, Verdict::kWorthIt);
    EXPECT_EQ(advice.recommended.share, 1);
    EXPECT_EQ(advice.contract, "exact");
    EXPECT_EQ(advice.eviction, "Auto");
}

TEST(Advise, RanksThatShareANodeCostTheSame) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(2000, 3, prng, 2);
    Question asked = question();
    asked.cache = Bytes{static_cast<std::uint64_t>(2000 * 1088 / 2)};
    const Advice advice = advice_of(text.trace(), asked);
    ASSERT_TRUE(advice.asked);
    EXPECT_NEAR(ratio(advice.asked->keep.origin_bytes, Bytes{2'000'000}), 2, 0.05);
}

// What is hot changes from phase to phase: a cache that never evicts keeps the first phase's.
TEST(Advise, RecommendsLruForAMovingHotSet) {
    Prng prng{test::seed()};
    TraceText text;
    for (std::uint32_t phase = 0; phase < 20; ++phase) {
        for (int i = 0; i < 500; ++i) {
            text.read(phase * 50 + static_cast<std::uint32_t>(prng.below(50)));
        }
    }
    const Advice advice = advice_of(text.trace(), question());
    EXPECT_EQ(advice.eviction, "LRU");
    EXPECT_LT(advice.recommended.share, 0.5);
}

TEST(Advise, OnePassIsWorthNothing) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(500, 1, prng);
    const Advice advice = advice_of(text.trace(), question());
    EXPECT_EQ(advice.verdict, Verdict::kOnePass);
    EXPECT_EQ(advice.recommended.size, Bytes{});
    EXPECT_EQ(advice.recommended.keep.origin_bytes, Bytes{500'000});
}

TEST(Advise, AFastOriginMakesTheProgramComputeBound) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 3, prng);
    Question asked = question();
    asked.compute_rate = 100;
    asked.origin = Origin{mib(100), std::chrono::milliseconds{1}};
    const Advice slow = advice_of(text.trace(), asked);
    EXPECT_EQ(slow.verdict, Verdict::kComputeBound);
    EXPECT_THAT(slow.verdict_reason, HasSubstr("traffic, not time"));
    EXPECT_NEAR(slow.without.seconds, 30, 0.5);
    asked.compute_rate = 100'000;
    const Advice fast = advice_of(text.trace(), asked);
    EXPECT_EQ(fast.verdict, Verdict::kWorthIt);
    EXPECT_LT(fast.curve.back().keep.seconds, 0.7 * fast.without.seconds);
}

TEST(Advise, SlowOriginTimesFollowTheBandwidth) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 4, prng);
    Question asked = question();
    asked.compute_rate = 1e6;
    asked.origin = Origin{Bytes{100'000}, Duration::zero()};
    const Advice advice = advice_of(text.trace(), asked);
    EXPECT_NEAR(advice.without.seconds, 40, 0.5);
    EXPECT_NEAR(advice.without.epoch_seconds, 10, 0.2);
    EXPECT_NEAR(advice.curve[4].keep.epoch_seconds, 5, 0.2);
}

TEST(Advise, WindowedAppliesToReadersThatEachReadAll) {
    Prng prng{test::seed()};
    TraceText text;
    for (int epoch = 0; epoch < 4; ++epoch) {
        const auto first = shuffled(1000, prng);
        const auto second = shuffled(1000, prng);
        for (std::size_t i = 0; i < 1000; ++i) {
            text.read(first[i], 0);
            text.read(second[i], 1);
        }
    }
    Question asked = question();
    asked.cache = kib(200);
    const Advice advice = advice_of(text.trace(), asked);
    EXPECT_EQ(advice.contract, "windowed");
    EXPECT_TRUE(advice.contracts.at(1).applies);
    EXPECT_LT(*advice.contracts[1].origin_bytes, *advice.contracts[0].origin_bytes);
}

TEST(Advise, AFixedOrderKeepsItsContract) {
    TraceText text;
    for (int i = 0; i < 3000; ++i) {
        text.read(i % 1000);
    }
    for (const ContractResult& contract : advice_of(text.trace(), question()).contracts) {
        EXPECT_EQ(contract.applies, contract.name == "exact") << contract.name;
    }
}

TEST(Advise, RefusesNumbersOutOfRange) {
    const Trace trace = trace_of("1 a 10\n2 a 10\n");
    const auto refused = [&trace](const std::function<void(Question&)>& change) {
        Question wrong = question();
        change(wrong);
        return !advise(trace, wrong).has_value();
    };
    EXPECT_TRUE(refused([](Question& wrong) { wrong.batch = 0; }));
    EXPECT_TRUE(refused([](Question& wrong) { wrong.workers = 0; }));
    EXPECT_TRUE(refused([](Question& wrong) { wrong.compute_rate = 0; }));
    EXPECT_TRUE(refused([](Question& wrong) { wrong.cache = Bytes::unlimited(); }));
    EXPECT_TRUE(refused([](Question& wrong) { wrong.origin = Origin{Bytes{}}; }));
}

TEST(Advise, SamplesMayBeEmpty) {
    EXPECT_TRUE(advise(trace_of("1 a 0\n1 b 0\n1 a 0\n1 b 0\n"), question()));
}

}  // namespace
}  // namespace stoker::advise
