#include "sidecar/core/eviction/importance_eviction.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"
#include "tests/unit/sidecar/core/eviction/policy_calls.h"

namespace stoker::sidecar {
namespace {

using Samples = std::vector<SampleIndex>;

class Values final : public ImportanceValues {
public:
    explicit Values(std::uint32_t count)
        : values(count, 0.5F),
          l_samples(count, false) {}

    [[nodiscard]] float value(SampleIndex sample) const override { return values[sample]; }

    [[nodiscard]] bool unimportant(SampleIndex sample) const override { return l_samples[sample]; }

    std::vector<float> values;
    std::vector<bool> l_samples;
};

Samples room(
    ImportanceEviction& policy,
    SampleIndex incoming,
    std::uint64_t needed,
    std::set<SampleIndex> pinned = {}) {
    Samples victims;
    const bool made =
        policy.make_room(incoming, Bytes{needed}, test::AllBut{std::move(pinned)}, victims);
    EXPECT_EQ(made, !victims.empty());
    return victims;
}

Samples shrunk(ImportanceEviction& policy, std::uint64_t excess) {
    Samples victims;
    policy.shrink(Bytes{excess}, victims);
    return victims;
}

// Samples 0..9 of ten bytes with the values 0.0, 0.1 .. 0.9 are resident.
struct TenResidents : ::testing::Test {
    TenResidents()
        : values(40),
          policy(40, values) {
        for (SampleIndex sample = 0; sample < 10; ++sample) {
            values.values[sample] = static_cast<float>(sample) / 10;
            policy.on_resident(sample, Bytes{10});
        }
    }

    void finish_refresh() {
        while (policy.refreshing()) {
            policy.on_read(39, false);
        }
    }

    Values values;
    ImportanceEviction policy;
};

using ImportanceEvictionOfTen = TenResidents;

TEST_F(ImportanceEvictionOfTen, DisplacesTheLeastImportant) {
    values.values[20] = 0.95F;
    EXPECT_EQ(room(policy, 20, 10), (Samples{0}));
    EXPECT_EQ(room(policy, 20, 30), (Samples{0, 1, 2}));
    EXPECT_EQ(room(policy, 20, 11), (Samples{0, 1}));
}

TEST_F(ImportanceEvictionOfTen, AdmitsOnlySamplesWorthMoreThanEachVictim) {
    values.values[20] = 0.15F;
    EXPECT_EQ(room(policy, 20, 20), (Samples{0, 1}));
    EXPECT_EQ(room(policy, 20, 21), Samples{});
    values.values[20] = 0.0F;
    EXPECT_EQ(room(policy, 20, 10), Samples{}) << "equals stay";
}

TEST_F(ImportanceEvictionOfTen, SkipsNonEvictableResidents) {
    values.values[20] = 0.95F;
    EXPECT_EQ(room(policy, 20, 20, {0, 2}), (Samples{1, 3}));
    values.values[20] = 0.05F;
    EXPECT_EQ(room(policy, 20, 10, {0}), Samples{});
}

TEST_F(ImportanceEvictionOfTen, ForgetsRemovedSamples) {
    policy.on_gone(0);
    policy.on_gone(5);
    values.values[20] = 0.95F;
    EXPECT_EQ(room(policy, 20, 50), (Samples{1, 2, 3, 4, 6}));
    EXPECT_EQ(policy.resident_bytes(), Bytes{80});
}

TEST_F(ImportanceEvictionOfTen, DisplacesNothingWhileHeld) {
    values.values[20] = 1.0F;
    policy.hold(true);
    EXPECT_EQ(room(policy, 20, 10), Samples{});
    policy.hold(false);
    EXPECT_EQ(room(policy, 20, 10), (Samples{0}));
}

TEST_F(ImportanceEvictionOfTen, KeepsAdmissionValuesUntilARefresh) {
    values.values[0] = 0.99F;
    values.values[9] = 0.01F;
    values.values[20] = 0.95F;
    EXPECT_EQ(room(policy, 20, 10), (Samples{0}));
    policy.refresh();
    finish_refresh();
    EXPECT_EQ(room(policy, 20, 20), (Samples{9, 1}));
}

// A refresh moves the residents step by step to a second heap, with their new values. Meanwhile
// victims come from both heaps, and samples may be admitted.
TEST_F(ImportanceEvictionOfTen, KeepsAllResidentsDuringARefresh) {
    std::reverse(values.values.begin(), values.values.begin() + 10);  // sample 9 now has 0.0
    policy.refresh();
    values.values[30] = 0.05F;
    policy.on_resident(30, Bytes{10});
    EXPECT_TRUE(policy.refreshing());
    values.values[31] = 1.0F;
    const Samples first = room(policy, 31, 110);
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), 11U);
    policy.on_gone(3);
    finish_refresh();
    EXPECT_EQ(room(policy, 31, 100), (Samples{9, 30, 8, 7, 6, 5, 4, 2, 1, 0}));
}

TEST_F(ImportanceEvictionOfTen, RefreshesAgainIfCalledDuringARefresh) {
    policy.refresh();
    policy.on_read(39, false);
    ASSERT_TRUE(policy.refreshing());
    values.values[0] = 0.99F;
    values.values[9] = 0.001F;  // one of those already refreshed
    policy.refresh();
    finish_refresh();
    values.values[20] = 0.95F;
    EXPECT_EQ(room(policy, 20, 20), (Samples{9, 1}));
}

TEST_F(ImportanceEvictionOfTen, ShrinkEvictsTheLeastImportant) {
    EXPECT_EQ(shrunk(policy, 25), (Samples{0, 1, 2}));
    EXPECT_EQ(shrunk(policy, 1000).size(), 10U);
    EXPECT_EQ(shrunk(policy, 0), Samples{});
}

// Nine important residents and one unimportant, of ten bytes each; samples 20 to 39 are unimportant
// too.
struct BothRegions : ::testing::Test {
    BothRegions()
        : values(40),
          policy(40, values) {
        std::fill(values.l_samples.begin() + 20, values.l_samples.end(), true);
        for (SampleIndex sample = 0; sample < 9; ++sample) {
            values.values[sample] = 0.5F + static_cast<float>(sample) / 20;
            policy.on_resident(sample, Bytes{10});
        }
        policy.on_resident(20, Bytes{10});
    }

    Values values;
    ImportanceEviction policy;
};

using ImportanceEvictionRegions = BothRegions;

TEST_F(ImportanceEvictionRegions, UnimportantSampleReplacesAnUnimportantOneThatWasRead) {
    EXPECT_EQ(room(policy, 21, 10), Samples{}) << "nobody has read 20 yet";
    policy.on_read(20, true);
    EXPECT_EQ(room(policy, 21, 10), (Samples{20}));
}

TEST_F(ImportanceEvictionRegions, UnimportantSampleReplacesAnUnreadOneOfAnEarlierEpoch) {
    policy.refresh();
    EXPECT_EQ(room(policy, 21, 10), (Samples{20}));
}

TEST_F(ImportanceEvictionRegions, UnimportantRegionGrowsToItsShare) {
    policy.on_gone(20);
    policy.on_resident(9, Bytes{10});
    values.values[9] = 0.5F;
    EXPECT_EQ(policy.unimportant_bytes(), Bytes::zero());
    EXPECT_EQ(room(policy, 21, 10), (Samples{0})) << "a tenth of the bytes is for L";
    EXPECT_EQ(room(policy, 21, 11), Samples{});
}

TEST_F(ImportanceEvictionRegions, ImportantRegionTakesBackTheExcess) {
    policy.on_gone(0);
    policy.on_gone(1);
    policy.on_resident(21, Bytes{10});
    policy.on_resident(22, Bytes{10});
    EXPECT_EQ(policy.unimportant_bytes(), Bytes{30});
    policy.on_read(21, true);
    values.values[10] = 0.01F;
    EXPECT_EQ(room(policy, 10, 10), (Samples{21})) << "even for the least important H-sample";
    EXPECT_EQ(room(policy, 10, 20), (Samples{21, 20}));
    EXPECT_EQ(room(policy, 10, 30), Samples{});
    values.values[10] = 1.0F;
    EXPECT_EQ(room(policy, 10, 30), (Samples{21, 20, 2}));
}

TEST_F(ImportanceEvictionRegions, BothRegionsShrinkByTheSameAmount) {
    policy.on_resident(21, Bytes{10});
    // 20 of the 110 bytes are unimportant. Only 90 bytes may stay, and a tenth of them, 9 bytes,
    // may be unimportant: less than one sample.
    EXPECT_EQ(shrunk(policy, 20), (Samples{20, 21}));
    EXPECT_EQ(shrunk(policy, 30), (Samples{20, 21, 0}));
    EXPECT_EQ(shrunk(policy, 110).size(), 11U);
}

// Compares with a plain map under random histories: both regions, refreshes, pinned residents. The
// expected victims come from sorting all residents by their value at admission or at the last
// refresh.
TEST(ImportanceEviction, ChoosesTheSameVictimsAsSorting) {
    const std::uint64_t seed = test::seed();
    Prng luck(seed);
    constexpr std::uint32_t kCount = 50;
    Values values(kCount);
    ImportanceEviction policy(kCount, values, {.l_share = 0, .migrate = 1000});
    std::map<SampleIndex, std::pair<float, std::uint64_t>> plain;  // value, bytes
    for (int i = 0; i < 5000; ++i) {
        const auto sample = static_cast<SampleIndex>(luck.below(kCount));
        values.values[sample] = static_cast<float>(luck.below(30)) / 30;
        if (plain.contains(sample)) {
            policy.on_gone(sample);
            plain.erase(sample);
        } else {
            std::vector<std::pair<float, SampleIndex>> order;
            for (const auto& [resident, worth] : plain) {
                order.emplace_back(worth.first, resident);
            }
            std::sort(order.begin(), order.end());
            const auto needed = 1 + luck.below(60);
            const auto pinned = static_cast<SampleIndex>(luck.below(kCount));
            Samples want;
            std::uint64_t freed = 0;
            for (const auto& [value, resident] : order) {
                if (freed < needed && value < values.values[sample] && resident != pinned) {
                    want.push_back(resident);
                    freed += plain[resident].second;
                }
            }
            ASSERT_EQ(room(policy, sample, needed, {pinned}), freed < needed ? Samples{} : want);
            const std::uint64_t bytes = 1 + luck.below(30);
            policy.on_resident(sample, Bytes{bytes});
            plain[sample] = {values.values[sample], bytes};
        }
        if (luck.below(40) == 0) {
            policy.refresh();
            policy.on_read(0, false);
            ASSERT_FALSE(policy.refreshing());
            for (auto& [resident, worth] : plain) {
                worth.first = values.values[resident];
            }
        }
    }
}

TEST(ImportanceEviction, CountsRegionsInBytes) {
    Prng luck(test::seed());
    Values values(30);
    std::fill(values.l_samples.begin() + 15, values.l_samples.end(), true);
    ImportanceEviction policy(30, values);
    std::map<SampleIndex, std::uint64_t> plain;
    for (int i = 0; i < 2000; ++i) {
        const auto sample = static_cast<SampleIndex>(luck.below(30));
        if (plain.contains(sample)) {
            policy.on_gone(sample);
            plain.erase(sample);
        } else {
            plain[sample] = luck.below(1000);
            policy.on_resident(sample, Bytes{plain[sample]});
        }
        policy.on_read(static_cast<SampleIndex>(luck.below(30)), true);
        std::uint64_t total = 0;
        std::uint64_t unimportant = 0;
        for (const auto& [resident, bytes] : plain) {
            total += bytes;
            unimportant += resident >= 15 ? bytes : 0;
        }
        ASSERT_EQ(policy.resident_bytes(), Bytes{total});
        ASSERT_EQ(policy.unimportant_bytes(), Bytes{unimportant});
    }
}

}  // namespace
}  // namespace stoker::sidecar
