#include "sidecar/pack/pack_plan.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using domain::ListedObject;
using domain::PackOrder;

std::vector<ListedObject> objects(std::size_t count, Prng& random) {
    std::vector<ListedObject> listed;
    for (std::size_t i = 0; i < count; ++i) {
        listed.push_back({"k" + std::to_string(i), random.below(3000), "e" + std::to_string(i)});
    }
    return listed;
}

std::vector<std::string> names_of(const std::vector<PlannedChunk>& chunks) {
    std::vector<std::string> names;
    for (const PlannedChunk& chunk : chunks) {
        for (const auto& sample : chunk.header.samples) {
            names.push_back(sample.name);
        }
    }
    return names;
}

PackSettings settings(PackOrder order, std::uint64_t seed = 1) {
    return {order, seed, kib(16)};
}

TEST(PackPlan, EveryObjectOnceInChunksOfTheAskedSize) {
    Prng random{test::seed()};
    const auto listed = objects(500 + random.below(500), random);
    const auto chunks = plan_pack(listed, settings(PackOrder::kRandom, random())).value();
    const auto names = names_of(chunks);
    EXPECT_EQ(names.size(), listed.size());
    EXPECT_EQ(std::set(names.begin(), names.end()).size(), listed.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        const auto& header = chunks[i].header;
        EXPECT_EQ(header.number, i);
        EXPECT_EQ(header.pack, chunks.front().header.pack);
        EXPECT_EQ(header.pack.chunk_count, chunks.size());
        const std::uint64_t payload = header.object_bytes() - header.header_bytes();
        EXPECT_LT(payload, kib(16).count() + 3000);
        if (i + 1 < chunks.size()) {
            EXPECT_GE(payload, kib(16).count());
        }
        for (std::size_t at = 0; at < header.samples.size(); ++at) {
            EXPECT_EQ("e" + header.samples[at].name.substr(1), chunks[i].etags[at]);
        }
    }
}

TEST(PackPlan, ListedOrderIsSortedAndRandomOrderIsNot) {
    Prng random{3};
    const auto listed = objects(300, random);
    const auto sorted = names_of(plan_pack(listed, settings(PackOrder::kListed)).value());
    EXPECT_TRUE(std::ranges::is_sorted(sorted));
    const auto one = names_of(plan_pack(listed, settings(PackOrder::kRandom, 1)).value());
    EXPECT_NE(one, sorted);
    EXPECT_NE(one, names_of(plan_pack(listed, settings(PackOrder::kRandom, 2)).value()));
}

TEST(PackPlan, EqualInputsGiveEqualPlansInAnyListingOrder) {
    Prng random{3};
    auto listed = objects(300, random);
    const auto first = plan_pack(listed, settings(PackOrder::kRandom)).value();
    std::ranges::reverse(listed);
    const auto second = plan_pack(listed, settings(PackOrder::kRandom)).value();
    EXPECT_EQ(names_of(first), names_of(second));
    EXPECT_EQ(first.front().header.pack, second.front().header.pack);
}

TEST(PackPlan, ChangedSourceOrSettingsIsAnotherPack) {
    Prng random{3};
    auto listed = objects(30, random);
    std::set<domain::PackId> ids;
    const auto add = [&](const PackSettings& how) {
        ids.insert(plan_pack(listed, how).value().front().header.pack.id);
    };
    add(settings(PackOrder::kRandom, 1));
    add(settings(PackOrder::kRandom, 2));
    add(settings(PackOrder::kListed));
    add({PackOrder::kRandom, 1, kib(32)});
    listed[4].etag = "changed";
    add(settings(PackOrder::kRandom, 1));
    EXPECT_EQ(ids.size(), 5U);
}

TEST(PackPlan, RefusesListingsThatAManifestRefuses) {
    EXPECT_FALSE(plan_pack({}, {}).has_value());
    EXPECT_FALSE(plan_pack({{"a", 1, "x"}, {"a", 2, "y"}}, {}).has_value());
    EXPECT_FALSE(plan_pack({{std::string(70'000, 'a'), 1, "x"}}, {}).has_value());
}

}  // namespace
}  // namespace stoker::sidecar
