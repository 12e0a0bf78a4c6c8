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

// The trace's rate was limited by the origin, so it does not tell how fast the program computes.
TEST(Advise, WithoutAComputeRateTimeIsNotKnown) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 3, prng);
    Question asked = question();
    asked.origin = Origin{Bytes{1'000'000}, Duration::zero()};  // 1,000 samples/s, as the trace
    const Advice advice = advice_of(text.trace(), asked);
    EXPECT_EQ(advice.verdict, Verdict::kTimeUnknown);
    EXPECT_EQ(advice.recommended.share, 1);
    EXPECT_GT(advice.contracts.size(), 1U);
}

// 20 ms for each of 8 requests at a time are slow, but not for 64 requests.
TEST(Advise, LookAheadIsNoMeritOfTheCache) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 3, prng);
    Question asked = question();
    asked.window = kib(200);
    asked.compute_rate = 1000;
    asked.origin = Origin{mib(100), std::chrono::milliseconds{20}};
    const Advice advice = advice_of(text.trace(), asked);
    EXPECT_EQ(advice.curve.front().size, Bytes{});
    EXPECT_GT(advice.without.seconds, 2 * advice.curve.front().keep.seconds);
    EXPECT_EQ(advice.verdict, Verdict::kLookAhead);
    EXPECT_EQ(advice.recommended.size, Bytes{});
    EXPECT_THAT(advice.verdict_reason, HasSubstr("with one that only reads ahead"));
}

// The sums are of 20 passes' worth of reads, and a cache of a tenth saves neither of them much.
TEST(Advise, ContractsReadAsMuchAsTheTrace) {
    Prng prng{test::seed()};
    TraceText text;
    for (int i = 0; i < 20'000; ++i) {
        text.read(static_cast<std::uint32_t>(prng.below(1 + prng.below(1000))));
    }
    Question asked = question();
    asked.cache = kib(100);
    const Advice advice = advice_of(text.trace(), asked);
    const Bytes replicate = *advice.contracts.at(3).origin_bytes;
    EXPECT_GT(ratio(replicate, advice.shape.dataset_bytes), 5);
    EXPECT_LT(ratio(replicate, advice.without.origin_bytes), 1);
}

TEST(Advise, ContractsEndWithinAnEpochAsTheTrace) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 2, prng);
    const auto third = shuffled(1000, prng);
    std::for_each(third.begin(), third.begin() + 100, [&](auto sample) { text.read(sample); });
    const Advice advice = advice_of(text.trace(), question());
    for (const ContractResult& contract : advice.contracts) {
        if (contract.applies) {
            EXPECT_LE(*contract.origin_bytes, advice.without.origin_bytes) << contract.name;
        }
    }
    Question none = question();
    none.cache = Bytes{};
    const Bytes importance = *advice_of(text.trace(), none).contracts.at(2).origin_bytes;
    EXPECT_LE(importance, Bytes{2'100'000});
}

TEST(Advise, StrayReadersDoNotSlowTheRun) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 3, prng);
    std::string lines = text.text();
    for (int host = 1; host <= 10; ++host) {
        lines += fmt::format("2.5 k{} 1000 - host{}\n", host, host);
    }
    Question asked = question();
    asked.origin = Origin{mib(100), std::chrono::milliseconds{1}};
    const Advice advice = advice_of(trace_of(lines), asked);
    EXPECT_EQ(advice.shape.pattern, Pattern::kEachOnce);
    EXPECT_NEAR(advice.without.seconds, 3, 0.2);
}

TEST(Advise, UnequalReadersEndTogether) {
    Prng prng{test::seed()};
    TraceText text;
    for (int epoch = 0; epoch < 3; ++epoch) {
        for (const std::uint32_t sample : shuffled(1000, prng)) {
            text.read(sample, prng.below(10) == 0 ? 1 : 0);
        }
    }
    Question asked = question();
    asked.origin = Origin{mib(100), std::chrono::milliseconds{1}};
    EXPECT_NEAR(advice_of(text.trace(), asked).without.seconds, 3, 0.2);
}

// Each phase has other hot samples: a cache that never evicts keeps the first phase's.
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
    EXPECT_THAT(advice.verdict_reason, HasSubstr("If the program makes more passes, record two"));
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
    EXPECT_NEAR(advice.curve[5].keep.epoch_seconds, 5, 0.2);
}

// The first epoch fills the cache; the later ones decide.
TEST(Advise, TheColdEpochDoesNotDecide) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 2, prng);
    Question asked = question();
    asked.compute_rate = 1000;
    asked.origin = Origin{Bytes{930'000}, Duration::zero()};  // an epoch lasts 1.08 instead of 1 s
    const Advice advice = advice_of(text.trace(), asked);
    EXPECT_LT(advice.without.seconds, 1.05 * advice.curve.back().keep.seconds);
    EXPECT_EQ(advice.verdict, Verdict::kWorthIt);
}

TEST(Advise, SaysHowMuchLruWouldRead) {
    Prng prng{test::seed()};
    TraceText text;
    text.shuffle(1000, 3, prng);
    Question asked = question();
    asked.compute_rate = 5000;
    asked.origin = Origin{Bytes{2'000'000}, Duration::zero()};  // enough for 40 % of the reads
    const Advice advice = advice_of(text.trace(), asked);
    EXPECT_LT(advice.recommended.share, 1);
    EXPECT_THAT(advice.eviction_reason, testing::MatchesRegex("LRU would read [0-9]+ % more"));
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
