#include "sidecar/core/eviction/keyed_heaps.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

TEST(ImportanceHeaps, OrderByKeyThenBySample) {
    ImportanceHeaps heaps(10);
    heaps.insert(0, {.key = 5, .sample = 7, .bytes = 1});
    heaps.insert(0, {.key = 3, .sample = 9, .bytes = 1});
    heaps.insert(0, {.key = 3, .sample = 2, .bytes = 1});
    heaps.insert(1, {.key = 1, .sample = 4, .bytes = 1});
    EXPECT_EQ(heaps.entries(0)[0].sample, 2U);
    EXPECT_EQ(heaps.entries(1)[0].sample, 4U);
    EXPECT_EQ(heaps.heap_of(9), 0U);
    EXPECT_TRUE(heaps.holds(4));
    EXPECT_FALSE(heaps.holds(5));
}

// Compares with a plain map, and checks the heap order at every node after every change.
TEST(ImportanceHeaps, KeepHeapOrderUnderRandomChanges) {
    Prng luck(test::seed());
    constexpr std::uint32_t kCount = 60;
    ImportanceHeaps heaps(kCount);
    std::map<SampleIndex, std::pair<std::uint32_t, std::uint32_t>> plain;  // heap, key
    for (int i = 0; i < 6000; ++i) {
        const auto sample = static_cast<SampleIndex>(luck.below(kCount));
        const auto key = static_cast<std::uint32_t>(luck.below(20));
        const auto heap = static_cast<std::uint32_t>(luck.below(ImportanceHeaps::kHeaps));
        if (!plain.contains(sample)) {
            heaps.insert(heap, {key, sample, sample + 100});
            plain[sample] = {heap, key};
        } else if (luck.below(2) == 0) {
            heaps.rekey(sample, key);
            plain[sample].second = key;
        } else {
            const auto gone = heaps.remove(sample);
            ASSERT_EQ(gone.key, plain[sample].second);
            ASSERT_EQ(gone.bytes, sample + 100);
            plain.erase(sample);
        }
        std::size_t held = 0;
        for (const std::uint32_t h : {0U, 1U, 2U}) {
            const auto& entries = heaps.entries(h);
            held += entries.size();
            for (std::size_t at = 0; at < entries.size(); ++at) {
                ASSERT_EQ(plain.at(entries[at].sample), std::pair(h, entries[at].key));
                ASSERT_EQ(&heaps.entry(entries[at].sample), &entries[at]);
                ASSERT_TRUE(
                    at == 0 || !entries[at].before(entries[(at - 1) / ImportanceHeaps::kChildren]));
            }
        }
        ASSERT_EQ(held, plain.size());
    }
}

TEST(ImportanceHeaps, TakeLastKeepsHeapOrder) {
    ImportanceHeaps heaps(8);
    for (SampleIndex sample = 0; sample < 8; ++sample) {
        heaps.insert(0, {.key = 8 - sample, .sample = sample, .bytes = 1});
    }
    const auto last = heaps.take_last(0);
    EXPECT_FALSE(heaps.holds(last.sample));
    EXPECT_EQ(heaps.entries(0).size(), 7U);
    EXPECT_EQ(heaps.entries(0)[0].sample, 7U);
}

}  // namespace
}  // namespace stoker::sidecar
