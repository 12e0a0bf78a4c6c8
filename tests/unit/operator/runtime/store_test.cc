#include "operator/runtime/store.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::control {
namespace {

struct Thing {
    std::string owner;
};

StoredPtr<Thing> thing(
    const std::string& name,
    const std::string& version,
    const std::string& owner = "",
    const std::string& uid = "") {
    return std::make_shared<const Stored<Thing>>(
        Stored<Thing>{{"d", name}, uid.empty() ? "u-" + name : uid, version, {owner}});
}

std::vector<std::string> names(const std::vector<StoredPtr<Thing>>& things) {
    std::vector<std::string> all;
    for (const auto& one : things) {
        all.push_back(one->key.name);
    }
    return all;
}

class StoreTest : public ::testing::Test {
protected:
    StoreTest() {
        store.add_index("owner", [](const Stored<Thing>& stored) -> std::vector<std::string> {
            return {stored.value.owner};
        });
    }

    Store<Thing> store;
};

TEST_F(StoreTest, ReturnsTheChangesOfAList) {
    store.replace({thing("a", "1"), thing("b", "2"), thing("c", "3")}, "3");
    const auto changes = store.replace({thing("b", "2"), thing("c", "5"), thing("d", "4")}, "6");
    ASSERT_EQ(changes.size(), 3U);
    EXPECT_EQ(changes[0].kind, ChangeKind::kDeleted);
    EXPECT_EQ(changes[0].object().key.name, "a");
    EXPECT_EQ(changes[0].before->resource_version, "1") << "the last observed state";
    EXPECT_EQ(changes[1].kind, ChangeKind::kUpdated);
    EXPECT_EQ(changes[1].before->resource_version, "3");
    EXPECT_EQ(changes[1].after->resource_version, "5");
    EXPECT_EQ(changes[2].kind, ChangeKind::kAdded);
    EXPECT_EQ(store.resource_version(), "6");
}

TEST_F(StoreTest, TakesTheLastOfTwoItemsWithOneName) {
    store.replace({thing("a", "1", "x"), thing("a", "2", "y")}, "2");
    EXPECT_EQ(store.size(), 1U);
    EXPECT_EQ(store.get({"d", "a"})->resource_version, "2");
    EXPECT_TRUE(store.by_index("owner", "x").empty());
}

TEST_F(StoreTest, AcceptsAnOlderList) {
    store.replace({thing("a", "100")}, "100");
    const auto changes = store.replace({thing("a", "7")}, "50");
    ASSERT_EQ(changes.size(), 1U);
    EXPECT_EQ(store.get({"d", "a"})->resource_version, "7");
    EXPECT_EQ(store.resource_version(), "50");
}

TEST_F(StoreTest, NewUidIsADeletionAndAnAddition) {
    store.upsert(thing("a", "1", "x", "first"));
    const auto changes = store.upsert(thing("a", "2", "y", "second"));
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[0].kind, ChangeKind::kDeleted);
    EXPECT_EQ(changes[0].before->uid, "first");
    EXPECT_EQ(changes[1].kind, ChangeKind::kAdded);
    EXPECT_EQ(changes[1].after->uid, "second");
    EXPECT_EQ(names(store.by_index("owner", "y")), std::vector<std::string>{"a"});
    EXPECT_TRUE(store.by_index("owner", "x").empty());
}

TEST_F(StoreTest, IgnoresAKnownVersion) {
    store.upsert(thing("a", "1"));
    EXPECT_TRUE(store.upsert(thing("a", "1")).empty());
}

TEST_F(StoreTest, ReturnsTheFinalStateOfADeletion) {
    store.upsert(thing("a", "1", "old"));
    const auto changes = store.remove({"d", "a"}, "2", thing("a", "2", "new"));
    ASSERT_EQ(changes.size(), 1U);
    EXPECT_EQ(changes[0].before->value.owner, "new");
    EXPECT_TRUE(store.remove({"d", "a"}, "3", nullptr).empty());
    EXPECT_EQ(store.resource_version(), "3");
}

TEST_F(StoreTest, ReportsWhetherItHasSeenAWrite) {
    store.replace({}, "9");
    EXPECT_TRUE(store.has_seen("9"));
    EXPECT_FALSE(store.has_seen("10"));
    store.advance("10");
    EXPECT_TRUE(store.has_seen("10"));
    store.advance("not-a-number");
    EXPECT_FALSE(store.has_seen("10"));
    EXPECT_TRUE(store.has_seen("not-a-number"));
}

TEST_F(StoreTest, ListOfOneNamespaceKeepsOthers) {
    const auto in = [](const std::string& ns, const std::string& version) {
        return std::make_shared<const Stored<Thing>>(
            Stored<Thing>{{ns, "a"}, "u-" + ns, version, {""}});
    };
    store.replace({in("one", "1")}, "1", "one");
    store.replace({in("two", "2")}, "2", "two");
    EXPECT_EQ(store.size(), 2U);
    const auto changes = store.replace({}, "9", "one");
    ASSERT_EQ(changes.size(), 1U);
    EXPECT_EQ(changes[0].object().key.ns, "one");
    EXPECT_NE(store.get({"two", "a"}), nullptr);
}

TEST_F(StoreTest, EachNamespaceTracksItsOwnVersion) {
    store.advance("100", "one");
    store.advance("50", "two");
    EXPECT_TRUE(store.has_seen("90", "one"));
    EXPECT_FALSE(store.has_seen("90", "two"));
    Store<Thing> whole;
    whole.advance("100");
    EXPECT_TRUE(whole.has_seen("90", "two"));
}

TEST_F(StoreTest, SnapshotsOutliveDeletion) {
    store.upsert(thing("a", "1", "x"));
    const auto held = store.get({"d", "a"});
    store.remove({"d", "a"}, "2", nullptr);
    EXPECT_EQ(held->value.owner, "x");
}

// Under random changes, indexes agree with a scan, and replayed changes reproduce the store.
TEST_F(StoreTest, IndexesAndChangesAgreeWithTheObjects) {
    Prng prng(test::seed());
    std::map<std::string, std::string> replayed;  // name -> uid
    int version = 0;
    const auto random_thing = [&] {
        return thing(
            fmt::format("n{}", prng.below(8)),
            fmt::format("{}", ++version),
            fmt::format("o{}", prng.below(3)),
            fmt::format("uid{}", prng.below(3)));
    };
    for (int step = 0; step < 3000; ++step) {
        Changes<Thing> changes;
        switch (prng.below(8)) {
            case 0: {
                std::vector<StoredPtr<Thing>> all;
                for (std::uint64_t i = prng.below(8); i > 0; --i) {
                    all.push_back(random_thing());
                }
                changes = store.replace(all, fmt::format("{}", version));
                break;
            }
            case 1:
            case 2:
                changes = store.remove(random_thing()->key, fmt::format("{}", version), nullptr);
                break;
            default:
                changes = store.upsert(random_thing());
        }
        for (const auto& change : changes) {
            if (change.kind == ChangeKind::kDeleted) {
                ASSERT_EQ(replayed.erase(change.object().key.name), 1U);
            } else {
                const bool known = replayed.count(change.object().key.name) > 0;
                ASSERT_EQ(known, change.kind == ChangeKind::kUpdated);
                replayed[change.object().key.name] = change.object().uid;
            }
        }
        std::map<std::string, std::string> held;
        std::map<std::string, std::vector<std::string>> by_owner;
        for (const auto& object : store.list()) {
            held[object->key.name] = object->uid;
            by_owner[object->value.owner].push_back(object->key.name);
        }
        ASSERT_EQ(held, replayed);
        for (const char* owner : {"o0", "o1", "o2"}) {
            ASSERT_EQ(names(store.by_index("owner", owner)), by_owner[owner]);
        }
    }
}

}  // namespace
}  // namespace stoker::control
