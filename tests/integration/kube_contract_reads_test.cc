// Lists, watches, and the kinds that the operator's runtime uses.
#include <mutex>
#include <thread>

#include "operator/kube/event.h"
#include "operator/kube/lease.h"
#include "operator/kube/status_error.h"
#include "operator/runtime/informer.h"
#include "tests/integration/kube_contract_fixture.h"
#include "tests/support/poll.h"

namespace stoker::control {
namespace {

using test::eventually;

class ApiContractReads : public ApiContract {};

TEST_P(ApiContractReads, ListsByPageAndSelector) {
    for (int i = 0; i < 5; ++i) {
        make_map(
            fmt::format("m{}", i),
            "{}",
            fmt::format(R"(,"labels":{{"app":"x","odd":"{}"}})", i % 2));
    }
    ListParams params;
    params.scope.ns = ns;
    params.scope.label_selector = "app=x";
    params.limit = 2;
    std::vector<std::string> sizes;
    std::size_t count = 0;
    std::string version;
    do {
        const auto page = json(call(list_request(kinds::kConfigMaps, params)).body);
        count += find_at(page.value(), {"items"})->size();
        const std::string this_version = string_at(page.value(), {"metadata", "resourceVersion"});
        EXPECT_TRUE(version.empty() || version == this_version) << "pages are of one moment";
        version = this_version;
        params.continue_token = string_at(page.value(), {"metadata", "continue"});
        make_map(fmt::format("late{}", count), "{}", R"(,"labels":{"app":"x"})");
    } while (!params.continue_token.empty());
    EXPECT_EQ(count, 5U) << "what came later is not in them";
    Scope scope;
    scope.ns = ns;
    scope.label_selector = "app in (x,y),odd!=1,odd";
    EXPECT_EQ(client->list(kinds::kConfigMaps, scope)->size(), 3U);
    scope.label_selector = "app";
    scope.field_selector = "metadata.name=m3";
    EXPECT_EQ(client->list(kinds::kConfigMaps, scope)->size(), 1U);
}

TEST_P(ApiContractReads, RejectsFutureVersionsAndUnknownPaths) {
    ListParams params;
    params.scope.ns = ns;
    params.resource_version = "999999999999";
    const auto future = call(list_request(kinds::kConfigMaps, params));
    EXPECT_EQ(future.status, 504);
    EXPECT_TRUE(read_failure(future.status, future.body).is_resource_version_too_large())
        << future.body;
    const ResourceKind nobody{"nobody.example", "v1", "things", "Thing", true};
    EXPECT_EQ(client->get(nobody, {ns, "a"}).error().code, ErrorCode::kNotFound);
}

// The lines of one watch that ends at its time limit.
TEST_P(ApiContractReads, WatchSendsChangesBookmarksAndDeselectedObjects) {
    Scope scope;
    scope.ns = ns;
    scope.label_selector = "app=x";
    const Object first = make_map("a", "{}", R"(,"labels":{"app":"x"})");
    ASSERT_TRUE(client->patch(
        kinds::kConfigMaps, first.key, json(R"({"data":{"v":"2"}})"), PatchType::kMerge));
    ASSERT_TRUE(client->patch(
        kinds::kConfigMaps,
        first.key,
        json(R"({"metadata":{"labels":{"app":"y"}}})"),
        PatchType::kMerge));
    make_map("b", "{}", R"(,"labels":{"app":"x"})");
    ASSERT_TRUE(client->remove(kinds::kConfigMaps, {ns, "b"}, {}));
    WatchParams params;
    params.scope = scope;
    params.resource_version = first.resource_version;
    params.timeout_seconds = 4;
    std::string bytes;
    ApiStreamSink sink;
    sink.on_open = [] {};
    sink.on_bytes = [&](std::string_view piece) {
        bytes += piece;
        return true;
    };
    const auto end = transport->stream(
        watch_request(kinds::kConfigMaps, params), std::chrono::seconds{60}, sink, {});
    ASSERT_TRUE(end) << end.error().message;
    LineSplitter lines;
    lines.push(bytes);
    std::vector<std::string> seen;
    std::string version = first.resource_version;
    while (const auto line = lines.next()) {
        const Json event = json(std::string(*line));
        const std::string type = string_at(event.value(), {"type"});
        const std::string next =
            string_at(event.value(), {"object", "metadata", "resourceVersion"});
        EXPECT_NE(compare_resource_versions(next, version), std::strong_ordering::less);
        version = next;
        if (type != "BOOKMARK") {
            seen.push_back(type + " " + string_at(event.value(), {"object", "metadata", "name"}));
        }
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"MODIFIED a", "DELETED a", "ADDED b", "DELETED b"}));
    EXPECT_EQ(lines.pending(), 0U);
}

TEST_P(ApiContractReads, InformerSeesRecreatedObjectByItsNewUid) {
    WatchOptions options;
    options.kind = kinds::kConfigMaps;
    options.scope.ns = ns;
    RestTransport own(*access, {"stoker-contract informer", mib(64), 8}, clock);
    Informer<Json> informer(
        own, options, [](const Json& raw) -> Result<Json> { return raw; }, clock, 1);
    std::mutex mutex;
    std::vector<std::string> seen;
    informer.add_handler([&](const Change<Json>& change) {
        if (change.object().key.name == "a") {
            const std::lock_guard lock(mutex);
            constexpr const char* kNames[] = {"added", "updated", "deleted"};
            seen.emplace_back(kNames[static_cast<int>(change.kind)]);
        }
    });
    make_map("a");
    std::jthread thread([&](const std::stop_token& stop) { informer.run(stop); });
    ASSERT_TRUE(eventually([&] { return informer.has_synced(); }));
    ASSERT_TRUE(client->remove(kinds::kConfigMaps, {ns, "a"}, {}));
    const Object again = make_map("a");
    ASSERT_TRUE(eventually([&] { return informer.store().has_seen(again.resource_version); }));
    const auto held = informer.store().get({ns, "a"});
    ASSERT_NE(held, nullptr);
    EXPECT_EQ(held->uid, again.uid);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(seen, (std::vector<std::string>{"added", "deleted", "added"}));
}

TEST_P(ApiContractReads, LeaseNeedsSixFractionDigitsAndVersion) {
    const ObjectKey key{ns, "lease"};
    LeaseRecord record{"me", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000001Z", 0};
    const auto made = client->create(kinds::kLeases, ns, write_lease(key, record));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(read_lease(made->raw), record);
    record.renew_time = "2026-01-01T00:00:00Z";
    EXPECT_EQ(
        client->replace(kinds::kLeases, key, write_lease(key, record, &made->raw)).error().code,
        ErrorCode::kInvalidArgument);
    record.renew_time = "2026-01-01T00:00:02.000000Z";
    EXPECT_TRUE(client->replace(kinds::kLeases, key, write_lease(key, record, &made->raw)));
    EXPECT_EQ(
        client->replace(kinds::kLeases, key, write_lease(key, record, &made->raw)).error().code,
        ErrorCode::kConflict);
}

TEST_P(ApiContractReads, AcceptsEventsAndEventSeries) {
    EventNote note;
    const Object about = make_map("a");
    note.regarding = {"v1", "ConfigMap", about.key, about.uid, about.resource_version};
    note.reason = "Tested";
    note.action = "Test";
    note.note = std::string(2000, 'x') + "ä";
    const ObjectKey key{ns, "a.1"};
    const auto made = client->create(
        kinds::kEvents, ns, event_object(key, note, clock.wall_now(), {"stoker.dev/test", "one"}));
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(string_at(made->raw.value(), {"note"}).size(), 1024U);
    const auto series = client->patch(
        kinds::kEvents, key, event_series_patch(2, clock.wall_now()), PatchType::kMerge);
    ASSERT_TRUE(series) << series.error().message;
    EXPECT_EQ(integer_at(series->raw.value(), {"series", "count"}), 2);
}

TEST_P(ApiContractReads, RejectsUnknownTokens) {
    EXPECT_EQ(client->review_token("made-up", {"stoker.dev"}).error().code, ErrorCode::kForbidden);
}

INSTANTIATE_TEST_SUITE_P(
    Server, ApiContractReads, ::testing::ValuesIn(servers()), [](const auto& server) {
        return server.param;
    });

}  // namespace
}  // namespace stoker::control
