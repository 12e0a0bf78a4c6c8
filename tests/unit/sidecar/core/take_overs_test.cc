#include "sidecar/core/take_overs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

// A node that joins a group, with `joiners - 1` others, and starts its `samples` in turn. `old` nodes
// were there; they have each sample with chance `resident`. Answers come `in_flight` samples later.
struct Join {
    std::size_t old = 1;
    std::size_t joiners = 1;
    double resident = 1;
    std::size_t in_flight = 1;
    std::size_t samples = 2000;
};

struct Outcome {
    std::size_t there = 0;       // samples that an old node had
    std::size_t taken_over = 0;  // samples taken over, of those
    std::size_t in_vain = 0;     // requests to nodes that lacked the sample
};

// Old nodes come first in `nodes`. The sample's former owner is the first old node in a random order,
// and the first node that is not passed over is asked.
Outcome run(const Join& join, std::mt19937_64& random) {
    struct Question {
        std::size_t node = 0;
        bool had = false;
    };

    std::vector<TakeOvers> nodes(join.old + join.joiners - 1);
    std::vector<std::size_t> order(nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::bernoulli_distribution resident{join.resident};
    std::deque<std::optional<Question>> asked;
    Outcome outcome;
    for (std::size_t i = 0; i < join.samples; ++i) {
        std::ranges::shuffle(order, random);
        const std::size_t former =
            *std::ranges::find_if(order, [&](std::size_t node) { return node < join.old; });
        const bool is_there = resident(random);
        const auto chosen =
            std::ranges::find_if(order, [&](std::size_t node) { return nodes[node].may_ask(); });
        outcome.there += is_there ? 1 : 0;
        asked.emplace_back();
        if (chosen != order.end()) {
            const bool had = *chosen == former && is_there;
            asked.back() = {*chosen, had};
            ++(had ? outcome.taken_over : outcome.in_vain);
        }
        if (asked.size() >= join.in_flight) {
            if (const auto& end = asked.front()) {
                end->had ? nodes[end->node].note_had() : nodes[end->node].note_lacked();
            }
            asked.pop_front();
        }
    }
    return outcome;
}

// Over many joins: the share of the samples that were there and were taken over.
double share_taken_over(const Join& join, std::mt19937_64& random) {
    constexpr int kJoins = 60;
    double there = 0;
    double taken_over = 0;
    for (int i = 0; i < kJoins; ++i) {
        const Outcome outcome = run(join, random);
        there += static_cast<double>(outcome.there);
        taken_over += static_cast<double>(outcome.taken_over);
    }
    return taken_over / there;
}

TEST(TakeOvers, PassesANodeOverThatLacksTheFirstSamples) {
    TakeOvers node;
    for (int i = 0; i < TakeOvers::kLacks; ++i) {
        ASSERT_TRUE(node.may_ask());
        node.note_lacked();
    }
    EXPECT_FALSE(node.may_ask());
}

TEST(TakeOvers, AnswersInFlightCountAfterTheNodeIsPassedOver) {
    TakeOvers node;
    for (int i = 0; i < TakeOvers::kLacks + TakeOvers::kEarned - 1; ++i) {
        node.note_lacked();
    }
    ASSERT_FALSE(node.may_ask());
    node.note_had();
    EXPECT_TRUE(node.may_ask());
}

TEST(TakeOvers, ANodeThatHasLostItsSamplesIsAskedForFewMore) {
    TakeOvers node;
    for (int i = 0; i < 1000; ++i) {
        node.note_had();
    }
    int in_vain = 0;
    for (; node.may_ask(); ++in_vain) {
        node.note_lacked();
    }
    EXPECT_EQ(in_vain, TakeOvers::kLacksMax);
}

TEST(TakeOvers, NodesThatBeginTogetherAskEachOtherAFewTimes) {
    std::mt19937_64 random{test::seed()};
    constexpr std::size_t kLacks = TakeOvers::kLacks;
    for (const std::size_t joiners : {1U, 15U, 63U}) {
        EXPECT_EQ(run({.joiners = joiners, .resident = 0}, random).in_vain, joiners * kLacks);
        EXPECT_LT(
            run({.joiners = joiners, .resident = 0, .in_flight = 64}, random).in_vain,
            2 * joiners * kLacks + 64);
    }
}

TEST(TakeOvers, NearlyAllSamplesOfAFullGroupAreTakenOver) {
    std::mt19937_64 random{test::seed()};
    for (const std::size_t in_flight : {1U, 64U}) {
        EXPECT_EQ(share_taken_over({.old = 3, .in_flight = in_flight}, random), 1);
        EXPECT_GT(share_taken_over({2, 14, 1, in_flight}, random), 0.85);
        EXPECT_GT(share_taken_over({4, 28, 1, in_flight}, random), 0.75);
    }
}

TEST(TakeOvers, MostSamplesAreTakenOverFromNodesThatHaveAPartOfThem) {
    std::mt19937_64 random{test::seed()};
    for (const double resident : {0.3, 0.5, 0.7}) {
        const double least = resident < 0.5 ? 0.7 : 0.85;
        for (const std::size_t in_flight : {1U, 64U}) {
            EXPECT_GT(share_taken_over({1, 1, resident, in_flight}, random), least);
            EXPECT_GT(share_taken_over({3, 1, resident, in_flight}, random), least);
            EXPECT_GT(share_taken_over({2, 14, resident, in_flight}, random), least);
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
