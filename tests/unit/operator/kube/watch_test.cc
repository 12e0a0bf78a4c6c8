#include "operator/kube/watch.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours{1}};

std::string pod(const std::string& name, const std::string& version) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"d","uid":"u-{}","resourceVersion":"{}"}}}})",
        name,
        name,
        version);
}

std::string event(const std::string& type, const std::string& object) {
    return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

std::string error_event(int code) {
    return event(
        "ERROR",
        fmt::format(R"({{"kind":"Status","code":{},"reason":"","message":"told so"}})", code));
}

ApiResponse page(
    const std::string& version, const std::string& items, const std::string& next = "") {
    return {
        200,
        fmt::format(
            R"({{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
            version,
            next,
            items)};
}

// A machine with a clock that the test moves.
class WatchMachineTest : public ::testing::Test {
protected:
    static WatchOptions options() {
        WatchOptions options;
        options.kind = kinds::kPods;
        options.page_size = 2;
        return options;
    }

    // The request to send now; "" if it waits.
    std::string sends() {
        const WatchStep step = machine.next_step(now);
        const auto* send = std::get_if<SendRequest>(&step);
        return send == nullptr ? "" : send->request.target;
    }

    // Advances the clock to the next step; returns the wait.
    Duration waits() {
        const WatchStep step = machine.next_step(now);
        const auto* wait = std::get_if<WaitUntil>(&step);
        if (wait == nullptr) {
            ADD_FAILURE() << "the machine does not wait";
            return {};
        }
        const Duration waited = wait->at - now;
        now = wait->at;
        return waited;
    }

    void list_and_watch(const std::string& version = "10") {
        ASSERT_NE(sends().find("limit=2"), std::string::npos);
        machine.on_response(page(version, pod("a", "5")), now);
        open_watch();
    }

    void open_watch() {
        ASSERT_NE(sends().find("watch=1"), std::string::npos);
        machine.on_open(now);
    }

    // Checks that the next request is a list, possibly after a back-off.
    std::string next_list(bool after_back_off) {
        if (after_back_off) {
            EXPECT_GE(waits(), milliseconds{800});
        }
        std::string target = sends();
        EXPECT_EQ(target.find("watch=1"), std::string::npos);
        return target;
    }

    TimePoint now = kStart;
    WatchMachine machine{options(), 42};
};

TEST_F(WatchMachineTest, ListsFromTheCacheThenWatchesFromTheListsVersion) {
    EXPECT_EQ(sends(), "/api/v1/pods?limit=2&resourceVersion=0");
    const WatchEvents events =
        machine.on_response(page("10", pod("a", "5") + "," + pod("b", "7")), now);
    ASSERT_EQ(events.size(), 1U);
    const auto& replaced = std::get<Replaced>(events[0]);
    EXPECT_EQ(replaced.resource_version, "10");
    ASSERT_EQ(replaced.objects.size(), 2U);
    EXPECT_EQ(replaced.objects[1].key, (ObjectKey{"d", "b"}));
    const std::string watch = sends();
    EXPECT_NE(watch.find("watch=1&allowWatchBookmarks=true&resourceVersion=10"), std::string::npos);
    EXPECT_TRUE(machine.streaming());
}

TEST_F(WatchMachineTest, RequestsWatchesOfFiveToTenMinutesWithAGracePeriod) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        WatchMachine one(options(), seed);
        one.next_step(now);
        one.on_response(page("10", ""), now);
        const auto send = std::get<SendRequest>(one.next_step(now));
        EXPECT_TRUE(send.stream);
        EXPECT_GE(send.time_limit, seconds{330});
        EXPECT_LE(send.time_limit, seconds{630});
        const auto at = send.request.target.find("timeoutSeconds=");
        EXPECT_EQ(
            std::stol(send.request.target.substr(at + 15)),
            std::chrono::duration_cast<seconds>(send.time_limit).count() - 30);
    }
}

TEST_F(WatchMachineTest, CollectsAllPagesBeforeItReplaces) {
    sends();
    EXPECT_TRUE(machine.on_response(page("10", pod("a", "5"), "more"), now).empty());
    EXPECT_EQ(sends(), "/api/v1/pods?limit=2&continue=more");
    const WatchEvents events = machine.on_response(page("10", pod("b", "6")), now);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(std::get<Replaced>(events[0]).objects.size(), 2U);
}

TEST_F(WatchMachineTest, ListsWithoutPagesAtTheVersionItHasSeen) {
    list_and_watch();
    machine.on_bytes(error_event(410), now);
    EXPECT_EQ(next_list(true), "/api/v1/pods?resourceVersion=10");
}

TEST_F(WatchMachineTest, KeepsPagingAServerWithoutACache) {
    sends();
    machine.on_response(page("10", pod("a", "5"), "more"), now);
    sends();
    machine.on_response(page("10", pod("b", "5")), now);
    open_watch();
    machine.on_bytes(error_event(410), now);
    EXPECT_EQ(next_list(true), "/api/v1/pods?limit=2&resourceVersion=10");
}

TEST_F(WatchMachineTest, ListsUnpagedWhenALaterPageHasExpired) {
    sends();
    machine.on_response(page("10", pod("a", "5"), "more"), now);
    sends();
    const WatchEvents events = machine.on_response({410, ""}, now);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(next_list(false), "/api/v1/pods?resourceVersion=0");
    const WatchEvents after = machine.on_response(page("11", pod("b", "6")), now);
    EXPECT_EQ(std::get<Replaced>(after.back()).objects.size(), 1U) << "pages of before are gone";
}

TEST_F(WatchMachineTest, ListsWithoutAVersionIfItsOwnIsExpiredOrNewerThanTheServers) {
    const ApiResponse refusals[] = {
        {410, ""},
        {504, R"({"kind":"Status","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}})"}};
    for (const ApiResponse& refusal : refusals) {
        machine = WatchMachine(options(), 1);
        list_and_watch();
        machine.on_bytes(error_event(410), now);
        EXPECT_EQ(next_list(true), "/api/v1/pods?resourceVersion=10");
        machine.on_response(refusal, now);
        EXPECT_EQ(next_list(false), "/api/v1/pods?limit=2");
        machine.on_response(page("3", ""), now);
        EXPECT_EQ(machine.resource_version(), "3") << "the server went back, so do we";
        open_watch();
        machine.on_bytes(error_event(410), now);
        EXPECT_EQ(next_list(true), "/api/v1/pods?resourceVersion=3") << "its version counts again";
    }
}

TEST_F(WatchMachineTest, BacksOffIfAListWithoutAVersionIsRefused) {
    sends();
    machine.on_response({410, ""}, now);
    EXPECT_EQ(next_list(false), "/api/v1/pods?limit=2");
    machine.on_response({410, ""}, now);
    EXPECT_EQ(next_list(true), "/api/v1/pods?limit=2");
}

TEST_F(WatchMachineTest, BackOffGrowsWhileListsFail) {
    Duration longest{};
    for (int attempt = 0; attempt < 8; ++attempt) {
        EXPECT_NE(sends(), "");
        const WatchEvents events = machine.on_failure({ErrorCode::kUnavailable, "refused"}, now);
        EXPECT_TRUE(std::get<Troubled>(events.at(0)).lists_again);
        longest = std::max(longest, waits());
    }
    EXPECT_GE(longest, seconds{30});
    EXPECT_LE(longest, seconds{60});
}

TEST_F(WatchMachineTest, ObeysRetryAfterOfAListAndOfAWatch) {
    sends();
    machine.on_response({429, "", "17"}, now);
    EXPECT_EQ(waits(), seconds{17});
    list_and_watch();
    machine.on_end(now + seconds{5});
    sends();
    machine.on_response({429, "", "19"}, now);
    EXPECT_EQ(waits(), seconds{19});
    EXPECT_NE(sends().find("watch=1"), std::string::npos) << "429 is no reason to list";
}

TEST_F(WatchMachineTest, AppliesChangesAndAdvancesItsVersion) {
    list_and_watch();
    const WatchEvents events = machine.on_bytes(
        event("ADDED", pod("b", "11")) + event("MODIFIED", pod("a", "12")) +
            event("DELETED", pod("b", "13")) +
            event("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":"20"}})"),
        now);
    ASSERT_EQ(events.size(), 4U);
    EXPECT_EQ(std::get<Upserted>(events[0]).object.key.name, "b");
    EXPECT_EQ(std::get<Upserted>(events[1]).object.resource_version, "12");
    EXPECT_EQ(std::get<Removed>(events[2]).object.resource_version, "13");
    EXPECT_EQ(std::get<Bookmarked>(events[3]).resource_version, "20");
    EXPECT_EQ(machine.resource_version(), "20");
}

TEST_F(WatchMachineTest, ResumesACutWatchAfterItsLastCompleteEvent) {
    list_and_watch();
    machine.on_bytes(event("ADDED", pod("b", "11")) + R"({"type":"ADDED","obj)", now);
    EXPECT_TRUE(machine.on_end(now).empty());
    EXPECT_NE(
        sends().find("watch=1&allowWatchBookmarks=true&resourceVersion=11"), std::string::npos);
}

TEST_F(WatchMachineTest, EmptyWatchUnderASecondIsAFailure) {
    list_and_watch();
    const WatchEvents events = machine.on_end(now + milliseconds{999});
    ASSERT_EQ(events.size(), 1U);
    now += milliseconds{999};
    EXPECT_EQ(next_list(true), "/api/v1/pods?resourceVersion=10");
}

TEST_F(WatchMachineTest, RewatchesAtOnceAfterAQuietSecond) {
    list_and_watch();
    now += seconds{1};
    EXPECT_TRUE(machine.on_end(now).empty());
    EXPECT_NE(sends().find("watch=1"), std::string::npos);
}

TEST_F(WatchMachineTest, DoesNotListAfterAWatchWithoutResponse) {
    list_and_watch();
    machine.on_end(now + seconds{2});
    sends();
    const WatchEvents events = machine.on_failure({ErrorCode::kUnavailable, "refused"}, now);
    EXPECT_FALSE(std::get<Troubled>(events.at(0)).lists_again);
    EXPECT_GE(waits(), milliseconds{800});
    EXPECT_NE(sends().find("watch=1"), std::string::npos);
}

TEST_F(WatchMachineTest, ListsAgainIfTheServerRefusesTheWatch) {
    for (const int status : {400, 403, 404, 410, 500, 503}) {
        machine = WatchMachine(options(), 1);
        list_and_watch();
        machine.on_end(now + seconds{2});
        sends();
        machine.on_response({status, ""}, now);
        SCOPED_TRACE(status);
        EXPECT_EQ(next_list(true), "/api/v1/pods?resourceVersion=10");
    }
}

TEST_F(WatchMachineTest, ToleratesInternalErrorsForAWhileThenLists) {
    list_and_watch();
    const TimePoint first = now;
    bool listed = false;
    while (!listed) {
        const auto events = machine.on_bytes(error_event(500), now);
        listed = std::get<Troubled>(events.at(0)).lists_again;
        EXPECT_EQ(listed, now - first >= seconds{30});
        waits();
        if (!listed) {
            open_watch();
        }
    }
}

TEST_F(WatchMachineTest, ResumesAfterErrorEvent429) {
    list_and_watch();
    const auto events = machine.on_bytes(error_event(429), now);
    EXPECT_FALSE(std::get<Troubled>(events.at(0)).lists_again);
    EXPECT_FALSE(machine.streaming()) << "the old stream is to be closed";
    waits();
    EXPECT_NE(sends().find("watch=1"), std::string::npos);
}

TEST_F(WatchMachineTest, SkipsObjectsOfAnotherKindAndKeepsItsVersion) {
    list_and_watch();
    const auto events = machine.on_bytes(
        event(
            "ADDED",
            R"({"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","resourceVersion":"99"}})"),
        now);
    ASSERT_EQ(events.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<Troubled>(events[0]));
    EXPECT_EQ(machine.resource_version(), "10");
    EXPECT_TRUE(machine.streaming());
}

TEST_F(WatchMachineTest, ListsAfterAnUnreadableStream) {
    for (const std::string& line :
         {std::string("not json\n"),
          std::string("{}\n"),
          std::string(R"({"type":"ADDED"})") + "\n"}) {
        machine = WatchMachine(options(), 1);
        list_and_watch();
        machine.on_bytes(line, now);
        SCOPED_TRACE(line);
        EXPECT_FALSE(machine.streaming());
        next_list(true);
    }
}

TEST_F(WatchMachineTest, ListsAfterAnOverlongLine) {
    WatchOptions small = options();
    small.line_bytes_max = 300;
    machine = WatchMachine(small, 1);
    list_and_watch();
    const auto fine = machine.on_bytes(event("ADDED", pod("b", "11")), now);
    EXPECT_EQ(fine.size(), 1U);
    machine.on_bytes(std::string(301, ' '), now);
    EXPECT_FALSE(machine.streaming());
    next_list(true);
}

TEST_F(WatchMachineTest, ListsIfVersionsDecrease) {
    list_and_watch();
    const auto events =
        machine.on_bytes(event("MODIFIED", pod("a", "12")) + event("ADDED", pod("b", "11")), now);
    ASSERT_EQ(events.size(), 2U);
    EXPECT_TRUE(std::get<Troubled>(events[1]).lists_again);
    EXPECT_EQ(machine.resource_version(), "12") << "never back within a watch";
    EXPECT_EQ(next_list(true), "/api/v1/pods?resourceVersion=12");
}

TEST_F(WatchMachineTest, AcceptsARepeatedEvent) {
    list_and_watch();
    const std::string one = event("MODIFIED", pod("a", "12"));
    EXPECT_EQ(machine.on_bytes(one + one, now).size(), 2U);
    EXPECT_TRUE(machine.streaming());
}

TEST_F(WatchMachineTest, SkipsOnlyUnreadableItemsOfAList) {
    sends();
    const auto events = machine.on_response(
        page("10", pod("a", "5") + R"(,{"metadata":{}},)" + pod("b", "6")), now);
    ASSERT_EQ(events.size(), 2U);
    EXPECT_FALSE(std::get<Troubled>(events[0]).lists_again);
    EXPECT_EQ(std::get<Replaced>(events[1]).objects.size(), 2U);
}

TEST_F(WatchMachineTest, BacksOffAfterResponsesThatAreNotLists) {
    for (const char* body :
         {"", "[]", "{}", R"({"metadata":{"resourceVersion":"3"},"items":{}})"}) {
        machine = WatchMachine(options(), 1);
        sends();
        const auto events = machine.on_response({200, body}, now);
        SCOPED_TRACE(body);
        EXPECT_TRUE(std::get<Troubled>(events.at(0)).lists_again);
        next_list(true);
    }
}

// For any responses, the machine never throws, never gets stuck and never sends without pauses for
// ever.
TEST_F(WatchMachineTest, AnyResponseInAnyStateLeadsToANextStep) {
    const std::string bodies[] = {
        "", "null", page("7", pod("a", "5")).body, page("7", "", "c").body};
    const int statuses[] = {200, 204, 301, 400, 401, 403, 404, 409, 410, 429, 500, 503, 504};
    std::uint64_t seed = 20261121;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Prng prng(seed);
    std::map<bool, int> sent_at_once;
    int without_pause = 0;
    for (int round = 0; round < 20'000; ++round) {
        const WatchStep step = machine.next_step(now);
        if (const auto* wait = std::get_if<WaitUntil>(&step)) {
            ASSERT_GT(wait->at, now);
            now = wait->at;
            without_pause = 0;
            continue;
        }
        ASSERT_LT(++without_pause, 40);
        const auto& send = std::get<SendRequest>(step);
        const int status = statuses[prng.below(std::size(statuses))];
        if (prng.below(8) == 0) {
            machine.on_failure({ErrorCode::kUnavailable, "cut"}, now);
        } else if (send.stream && status == 200) {
            machine.on_open(now);
            const auto code = static_cast<int>(prng.below(600));
            machine.on_bytes(prng.below(2) == 0 ? error_event(code) : "garbage", now);
            machine.on_end(now);
        } else {
            machine.on_response({status, bodies[prng.below(std::size(bodies))]}, now);
        }
    }
}

}  // namespace
}  // namespace stoker::control
