// Leaders of one dataset on several nodes, one of which lists the origin for all.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "sidecar/core/listing_turn.h"
#include "tests/integration/sidecar_peers_fixture.h"

namespace stoker::test {
namespace {

using std::chrono::seconds;

class ListingTest : public PeersTest {
protected:
    ListingTest() {
        is_pinned = true;
        job_uid = "job-1";
    }

    // Sends the group of all sidecars, as the operator does.
    void gather() {
        control::PeerGroup group{"train", ++version, {}};
        for (std::size_t node = 0; node < sidecars.size(); ++node) {
            ASSERT_TRUE(eventually([&] { return status(node).peer_generation != 0; }));
            const auto now = status(node);
            group.members.push_back({node_name(node), now.peer_address, now.peer_generation});
        }
        for (const auto& one : sidecars) {
            one->ask([&](sidecar::Sidecar& sidecar) {
                sidecar.set_peers(group);
                return true;
            });
        }
    }

    // The revision that the node has from a listing or a peer, whether it is pinned or not.
    [[nodiscard]] std::optional<domain::RevisionId> revision(std::size_t node) const {
        return sidecars.at(node)->ask(
            [](sidecar::Sidecar& sidecar) { return sidecar.nodes().front()->read_revision(); });
    }

    void pin(domain::RevisionId revision) {
        for (const auto& one : sidecars) {
            one->ask([&](sidecar::Sidecar& sidecar) {
                sidecar.set_pin({"train", revision, {}});
                return true;
            });
        }
    }

    [[nodiscard]] bool all_have_it() const {
        for (std::size_t node = 0; node < sidecars.size(); ++node) {
            if (!eventually([&] { return revision(node) == data.manifest().revision(); })) {
                return false;
            }
        }
        return true;
    }

    // Nodes that have listed, and nodes that took the manifest.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> sources() const {
        std::pair<std::uint64_t, std::uint64_t> sum;
        for (std::size_t node = 0; node < sidecars.size(); ++node) {
            sum.first += status(node).manifests_listed;
            sum.second += status(node).manifests_taken;
        }
        return sum;
    }

    void start_nodes(std::size_t nodes) {
        for (std::size_t node = 0; node < nodes; ++node) {
            start();
        }
    }

    // The node that lists in a group of `nodes` members.
    static std::size_t lister(std::size_t nodes) {
        std::vector<sidecar::ListingTurn::Member> members;
        for (std::size_t node = 0; node < nodes; ++node) {
            members.push_back({node_name(node), 1});
        }
        for (std::size_t node = 0; node < nodes; ++node) {
            sidecar::ListingTurn turn{"train", node_name(node), TimePoint{}};
            turn.set_members(members);
            for (const auto& member : members) {
                turn.note(member.node, sidecar::ListingTurn::Said::kIdle, 0, TimePoint{});
            }
            if (turn.step(TimePoint{}).action == sidecar::ListingTurn::Action::kList) {
                return node;
            }
        }
        return 0;
    }
};

TEST_F(ListingTest, OneOfThreeListsForAll) {
    start_nodes(3);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U);
    EXPECT_EQ(sources(), std::pair(std::uint64_t{1}, std::uint64_t{2}));
    EXPECT_EQ(origin->fetches(), 0U) << "the key of their job has listed it";
    pin(data.manifest().revision());
    form_group();
    read_all(1, {shuffled(1), shuffled(2), shuffled(3)});
    EXPECT_EQ(origin->listings(), 1U);
}

// The manifest is sent in several messages.
TEST_F(ListingTest, ALargeManifestIsTaken) {
    data = Dataset{std::vector<std::uint64_t>(100'000, 3)};
    ASSERT_GT(data.manifest_bytes().size(), 5U << 20U);
    start_nodes(2);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U);
}

TEST_F(ListingTest, ANodeThatJoinsLaterTakesTheManifestInUse) {
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    pin(data.manifest().revision());
    ASSERT_TRUE(
        eventually([&] { return status(0).manifest_state == control::ManifestState::kReady; }));
    start_nodes(2);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U);
}

TEST_F(ListingTest, WithoutAGroupEachNodeListsAndItsWaitForAGroupShortensThatForThePin) {
    start_nodes(2);
    const SystemClock clock;
    const TimePoint began = clock.now();
    ASSERT_TRUE(all_have_it());
    EXPECT_GE(clock.now() - began, sidecar::ListingTurn::kGroupMax - seconds{1});
    for (std::size_t node = 0; node < 2; ++node) {
        ASSERT_TRUE(eventually(
            [&] { return status(node).manifest_state == control::ManifestState::kReady; }));
    }
    EXPECT_LE(clock.now() - began, sidecar::RevisionGate::kPatience + seconds{3});
    EXPECT_EQ(origin->listings(), 2U);
}

TEST_F(ListingTest, AListerThatIsCutOffFromTheNetworkIsReplaced) {
    start_nodes(3);
    hub.cut(node_name(lister(3)));
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_LE(origin->listings(), 2U);
    EXPECT_GE(sources().second, 1U) << "the third one takes it from the second";
}

TEST_F(ListingTest, AListerThatEndsInTheMiddleIsReplaced) {
    const std::size_t first = lister(3);
    lists_forever = first;
    start_nodes(3);
    gather();
    ASSERT_TRUE(eventually([&] { return status(first).objects_listed > 50; }));
    EXPECT_EQ(origin->listings(), 0U) << "the others wait";
    std::swap(sidecars[first], sidecars.back());
    sidecars.pop_back();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U);
    EXPECT_EQ(sources(), std::pair(std::uint64_t{1}, std::uint64_t{1}));
}

TEST_F(ListingTest, ADamagedManifestIsNotUsed) {
    start_nodes(2);
    hub.corrupt(node_name(lister(2)));
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 2U);
    EXPECT_EQ(sources(), std::pair(std::uint64_t{2}, std::uint64_t{0}));
}

// The third node is alone in its group when it lists, after a change at the origin. The pin then
// names the older revision.
TEST_F(ListingTest, ThePinDecidesWhichManifestIsTaken) {
    start_nodes(2);
    gather();
    ASSERT_TRUE(all_have_it());
    origin->list_instead({{"another", 1, "e"}});
    start_nodes(1);
    const control::PeerMember alone{node_name(2), "n2:1", status(2).peer_generation};
    sidecars[2]->ask([&](sidecar::Sidecar& sidecar) {
        sidecar.set_peers({"train", ++version, {alone}});
        return true;
    });
    ASSERT_TRUE(eventually([&] { return revision(2).has_value(); }));
    ASSERT_NE(revision(2), data.manifest().revision());
    gather();
    pin(data.manifest().revision());
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 2U);
    EXPECT_EQ(status(2).manifests_taken, 1U);
}

// Condition SampleChanged promises that the next attempt lists the origin again.
TEST_F(ListingTest, AManifestWithAChangedObjectIsNotTaken) {
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    pin(data.manifest().revision());
    const auto key = std::string{data.manifest().sample(domain::SampleId{7}).key};
    origin->fail_key(key, {ErrorCode::kConflict, "changed"});
    EXPECT_FALSE(connect(0).get(7).has_value());
    ASSERT_TRUE(eventually([&] { return !status(0).changed_key.empty(); }));
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 2U);
}

TEST_F(ListingTest, ANewAttemptTakesNoListingOfAnotherOneIfItMayBeNoneOld) {
    listing_age_max = Duration{};
    attempt_uid = "uid-a1";
    start_nodes(2);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U) << "within an attempt it is taken";
    attempt_uid = "uid-a2";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 2U);
    EXPECT_EQ(status(2).manifests_taken, 0U);
}

TEST_F(ListingTest, ANewAttemptTakesAListingThatIsYoungEnough) {
    listing_age_max = std::chrono::hours{1};
    attempt_uid = "uid-a1";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    attempt_uid = "uid-a2";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U);
    EXPECT_EQ(status(1).manifests_taken, 1U);
}

TEST_F(ListingTest, AYoungListingWithAChangedObjectIsNotUsedByTheNextAttempt) {
    listing_age_max = std::chrono::hours{1};
    attempt_uid = "uid-a1";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    pin(data.manifest().revision());
    const auto key = std::string{data.manifest().sample(domain::SampleId{7}).key};
    origin->fail_key(key, {ErrorCode::kConflict, "changed"});
    EXPECT_FALSE(connect(0).get(7).has_value());
    ASSERT_TRUE(eventually([&] { return !status(0).changed_key.empty(); }));
    sidecars.clear();
    attempt_uid = "uid-a2";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 2U);
}

// The operator pins the first revision that a rank reports: of the other job on that rank's node.
TEST_F(ListingTest, AnOldListingOfAnotherAttemptIsNotTakenEvenIfItIsPinned) {
    listing_age_max = Duration{};
    attempt_uid = "uid-a1";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    const auto old = data.manifest().revision();
    origin->list_instead({{"another", 1, "e"}});
    attempt_uid = "uid-b1";
    start_nodes(1);
    gather();
    ASSERT_TRUE(eventually([&] { return revision(1).has_value(); }));
    pin(old);
    ASSERT_TRUE(eventually([&] {
        return sidecars[1]->ask([](sidecar::Sidecar& sidecar) {
            return sidecar.nodes().front()->origin_change().has_value();
        });
    }));
    EXPECT_NE(revision(1), old);
    EXPECT_EQ(status(1).manifests_taken, 0U);
}

TEST_F(ListingTest, ThePinDecidesBetweenTwoYoungListings) {
    attempt_uid = "uid-a1";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    listing_age_max = Duration{};
    attempt_uid = "uid-b1";
    origin->list_instead({{"another", 1, "e"}});
    start_nodes(1);
    gather();
    ASSERT_TRUE(eventually([&] { return revision(1).has_value(); }));
    const auto other = revision(1);
    sidecars.clear();
    listing_age_max = std::chrono::hours{1};
    attempt_uid = "uid-c1";
    start_nodes(2);
    gather();
    ASSERT_TRUE(eventually([&] { return revision(0).has_value() && revision(1).has_value(); }));
    EXPECT_EQ(revision(0), data.manifest().revision());
    EXPECT_EQ(revision(1), other);
    pin(data.manifest().revision());
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 2U);
    EXPECT_EQ(status(1).manifests_taken, 1U);
}

// On one node, one after the other; the second job's own key must read an object.
TEST_F(ListingTest, AnotherJobUsesAYoungListingOfItsNodeOnceItsKeyHasReadTheDataset) {
    listing_age_max = std::chrono::hours{1};
    attempt_uid = "uid-a1";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    sidecars.clear();
    job_uid = "job-2";
    attempt_uid = "uid-b1";
    start_nodes(1);
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U);
    EXPECT_EQ(origin->fetches(), 1U);
    sidecars.clear();
    attempt_uid = "uid-b2";
    listing_age_max = Duration{};
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 2U);
}

TEST_F(ListingTest, WithoutJobsAYoungListingNeedsNoOrigin) {
    listing_age_max = std::chrono::hours{1};
    job_uid = "";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    sidecars.clear();
    origin->fail_with(Error{ErrorCode::kUnavailable, "503"});
    start_nodes(1);
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->fetches(), 0U);
}

TEST_F(ListingTest, AJobWhoseKeyReadsNothingGetsNoYoungListing) {
    listing_age_max = std::chrono::hours{1};
    attempt_uid = "uid-a1";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    sidecars.clear();
    for (std::uint64_t id = 0; id < data.manifest().sample_count(); ++id) {
        const auto key = std::string{data.manifest().sample(domain::SampleId{id}).key};
        origin->fail_key(key, {ErrorCode::kForbidden, "403"});
    }
    job_uid = "job-2";
    attempt_uid = "uid-b1";
    start_nodes(1);
    ASSERT_TRUE(
        eventually([&] { return status(0).manifest_state == control::ManifestState::kFailed; }));
    EXPECT_EQ(revision(0), std::nullopt);
    EXPECT_EQ(origin->listings(), 1U);
}

TEST_F(ListingTest, ASecondJobProvesItsCredentialsWithOneFetchAndTakesTheManifest) {
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    job_uid = "job-2";
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    EXPECT_EQ(origin->listings(), 1U);
    EXPECT_EQ(origin->fetches(), 1U);
}

TEST_F(ListingTest, ASidecarWhoseCredentialsReadNoSampleGetsNoManifest) {
    start_nodes(1);
    gather();
    ASSERT_TRUE(all_have_it());
    for (std::uint64_t id = 0; id < data.manifest().sample_count(); ++id) {
        const auto key = std::string{data.manifest().sample(domain::SampleId{id}).key};
        origin->fail_key(key, {ErrorCode::kForbidden, "403"});
    }
    job_uid = "job-2";
    start_nodes(1);
    gather();
    ASSERT_TRUE(
        eventually([&] { return status(1).manifest_state == control::ManifestState::kFailed; }));
    EXPECT_EQ(revision(1), std::nullopt);
    EXPECT_EQ(origin->listings(), 1U);
}

}  // namespace
}  // namespace stoker::test
