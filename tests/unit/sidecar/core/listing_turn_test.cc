#include "sidecar/core/listing_turn.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Action = ListingTurn::Action;
using Said = ListingTurn::Said;

const std::vector<ListingTurn::Member> kThree{{"n0", 1}, {"n1", 1}, {"n2", 1}};

// The node of the peer group that lists the origin if no node of the group has a listing.
std::string first_of(const std::vector<ListingTurn::Member>& members) {
    for (const auto& member : members) {
        ListingTurn turn{"uid", member.node, TimePoint{}};
        turn.set_members(members);
        for (const auto& other : members) {
            turn.note(other.node, Said::kIdle, 0, TimePoint{});
        }
        if (turn.step(TimePoint{}).action == Action::kList) {
            return member.node;
        }
    }
    return "";
}

// The three nodes in the order in which they list.
std::vector<std::string> order_of_three() {
    std::vector<std::string> order;
    for (auto left = kThree; !left.empty();) {
        order.push_back(first_of(left));
        std::erase_if(left, [&](const auto& member) { return member.node == order.back(); });
    }
    return order;
}

class ListingTurnTest : public testing::Test {
protected:
    ListingTurn turn_of(std::size_t position) {
        ListingTurn turn{"uid", order[position], now};
        turn.set_members(kThree);
        return turn;
    }

    const std::vector<std::string> order = order_of_three();
    TimePoint now{seconds{100}};
};

TEST_F(ListingTurnTest, WithoutAGroupListsAfterEightSeconds) {
    ListingTurn turn{"uid", "n0", now};
    EXPECT_EQ(turn.step(now + milliseconds{7999}).action, Action::kWait);
    turn.set_members({{"n1", 1}});
    EXPECT_EQ(turn.step(now + milliseconds{7999}).action, Action::kWait) << "not a member";
    EXPECT_EQ(turn.step(now + seconds{8}).action, Action::kList);
}

TEST_F(ListingTurnTest, ALoneMemberListsAtOnce) {
    ListingTurn turn{"uid", "n0", now};
    turn.set_members({{"n0", 1}});
    EXPECT_EQ(turn.step(now).action, Action::kList);
}

TEST_F(ListingTurnTest, FirstMemberListsOnceAllOthersHaveNoListing) {
    ListingTurn turn = turn_of(0);
    EXPECT_EQ(turn.step(now).asked, (std::vector{order[1], order[2]}));
    turn.note(order[1], Said::kIdle, 0, now);
    EXPECT_EQ(turn.step(now).action, Action::kWait);
    turn.note(order[2], Said::kTaking, 0, now);
    EXPECT_EQ(turn.step(now).action, Action::kList);
}

TEST_F(ListingTurnTest, FirstMemberTakesAnExistingManifestFromAPeer) {
    ListingTurn turn = turn_of(0);
    turn.note(order[2], Said::kHas, 0, now);
    const auto step = turn.step(now);
    EXPECT_EQ(step.action, Action::kTake);
    EXPECT_EQ(step.asked, std::vector{order[2]});
}

TEST_F(ListingTurnTest, FirstMemberWaitsWhileAPeerLists) {
    ListingTurn turn = turn_of(0);
    turn.note(order[1], Said::kIdle, 0, now);
    turn.note(order[2], Said::kListing, 5, now);
    EXPECT_EQ(turn.step(now).asked, std::vector{order[2]});
    EXPECT_EQ(turn.step(now + seconds{30}).action, Action::kList) << "it makes no progress";
}

TEST_F(ListingTurnTest, LaterMemberWaitsWhileTheFirstMakesProgress) {
    ListingTurn turn = turn_of(2);
    EXPECT_EQ(turn.step(now).asked, std::vector{order[0]});
    turn.note(order[0], Said::kListing, 1, now + seconds{1});
    EXPECT_EQ(turn.step(now + seconds{30}).asked, std::vector{order[0]});
    turn.note(order[0], Said::kListing, 2, now + seconds{30});
    EXPECT_EQ(turn.step(now + seconds{59}).asked, std::vector{order[0]});
    EXPECT_EQ(turn.step(now + seconds{60}).asked, std::vector{order[1]}) << "the next one";
}

TEST_F(ListingTurnTest, SilentAndFailedMembersAreSkipped) {
    ListingTurn turn = turn_of(2);
    EXPECT_EQ(turn.step(now).asked, std::vector{order[0]});
    EXPECT_EQ(turn.step(now + seconds{3}).asked, std::vector{order[1]});
    turn.note(order[1], Said::kFailed, 0, now + seconds{3});
    EXPECT_EQ(turn.step(now + seconds{3}).action, Action::kList);
}

TEST_F(ListingTurnTest, AFailedMemberIsAskedAgainOnceItHasANewLeader) {
    ListingTurn turn = turn_of(1);
    turn.note(order[0], Said::kFailed, 0, now);
    auto members = kThree;
    std::ranges::find(members, order[0], &ListingTurn::Member::node)->generation = 2;
    turn.set_members(members);
    EXPECT_EQ(turn.step(now).asked, std::vector{order[0]});
}

TEST_F(ListingTurnTest, ListsAfterTenMinutesDespiteProgressOfOthers) {
    ListingTurn turn = turn_of(1);
    for (Duration passed{}; passed < minutes{10}; passed += seconds{1}) {
        turn.note(
            order[0], Said::kListing, static_cast<std::uint64_t>(passed.count()), now + passed);
        EXPECT_EQ(turn.step(now + passed).action, Action::kWait);
    }
    EXPECT_EQ(turn.step(now + minutes{10}).action, Action::kList);
}

// Nodes that join one after the other, learn their groups late, and list for a while.
class Nodes {
public:
    explicit Nodes(Prng& prng)
        : prng_(prng) {
        for (std::size_t i = 0, count = 2 + prng.below(12); i < count; ++i) {
            nodes_.push_back(
                {"node-" + std::to_string(prng()), drawn(30000), milliseconds{200} + drawn(2000)});
        }
    }

    // Runs until all have a listing. Returns the number of listings; 0: some node still waits.
    std::size_t run() {
        for (TimePoint now{}; now < TimePoint{minutes{9}}; now += milliseconds{100}) {
            for (Node& node : nodes_) {
                advance(node, now);
            }
        }
        const bool all = std::ranges::all_of(nodes_, [](const auto& node) { return node.has; });
        return all ? listings_ : 0;
    }

private:
    struct Node {
        std::string name;
        Duration joins_at;
        Duration group_delay;  // less than kAnswerMax
        std::optional<ListingTurn> turn{};
        std::optional<TimePoint> lists_until{};
        std::vector<ListingTurn::Member> group{};
        bool has = false;
        bool follows = false;  // waits for a node that lists
    };

    Duration drawn(std::uint64_t most) { return milliseconds{prng_.below(most)}; }

    // Each node learns the group after its own delay.
    void learn(Node& node, TimePoint now) {
        std::vector<ListingTurn::Member> group;
        for (const Node& other : nodes_) {
            if (TimePoint{other.joins_at} + node.group_delay <= now) {
                group.push_back({other.name, 1});
            }
        }
        if (group.size() > node.group.size()) {
            node.group = group;
            node.turn->set_members(group);
        }
    }

    static bool knows(const Node& node, const Node& other) {
        return std::ranges::count(node.group, other.name, &ListingTurn::Member::node) > 0;
    }

    static Said told(const Node& node) {
        return node.has           ? Said::kHas
               : node.lists_until ? Said::kListing
               : node.follows     ? Said::kTaking
                                  : Said::kIdle;
    }

    void advance(Node& node, TimePoint now) {
        if (TimePoint{node.joins_at} > now) {
            return;
        }
        if (!node.turn) {
            node.turn.emplace("uid", node.name, now);
        }
        learn(node, now);
        if (node.lists_until) {
            node.has = node.has || now >= *node.lists_until;
        }
        if (node.has || node.lists_until) {
            return;
        }
        const auto step = node.turn->step(now);
        if (step.action == Action::kList) {
            ++listings_;
            node.lists_until = now + drawn(25000);
        }
        for (const Node& other : nodes_) {
            if (std::ranges::count(step.asked, other.name) > 0 && knows(other, node)) {
                node.has = step.action == Action::kTake;
                const Said said = told(other);
                node.follows = said == Said::kListing || said == Said::kTaking;
                node.turn->note(other.name, said, 1, now);
            }
        }
    }

    Prng& prng_;
    std::vector<Node> nodes_;
    std::size_t listings_ = 0;
};

TEST(ListingTurnProperty, NodesThatJoinInAnyOrderListOnce) {
    Prng prng{test::seed()};
    for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(Nodes{prng}.run(), 1U) << "round " << round;
    }
}

}  // namespace
}  // namespace stoker::sidecar
