#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/controllers/controller_parts.h"
#include "operator/kube/transport.h"
#include "operator/sidecars/node_registry.h"
#include "operator/sidecars/sidecar_registry.h"
#include "tests/support/fake_api_client.h"
#include "tests/support/manual_clock.h"

namespace stoker::test {

// A controller's surroundings without a server: a cache that the test fills, a client that records
// calls, a manual clock. The watches never run. Not thread-safe.
class ControllerBench {
public:
    // A transport without a server: every request fails.
    class NoTransport final : public control::ApiTransport {
    public:
        Result<control::ApiResponse> call(
            const control::ApiRequest&, Duration, std::stop_token) override {
            return fail(ErrorCode::kUnavailable, "no server here");
        }

        Result<control::ApiStreamEnd> stream(
            const control::ApiRequest&,
            Duration,
            const control::ApiStreamSink&,
            std::stop_token) override {
            return fail(ErrorCode::kUnavailable, "no server here");
        }
    };

    ControllerBench()
        : cache(
              [](const std::string&) { return std::make_unique<NoTransport>(); },
              "stoker-system",
              {},
              clock,
              1) {}

    // Delivers an object as a watch does.
    template <class T>
    void put(control::Informer<T>& informer, const T& value) {
        const control::ObjectMeta& meta = meta_of(value);
        auto stored = std::make_shared<control::Stored<T>>();
        stored->key = meta.key();
        stored->uid = meta.uid;
        stored->resource_version = std::to_string(++version_);
        stored->value = value;
        informer.store().upsert(std::move(stored));
    }

    // Brings the cache up to date with all writes of the client.
    template <class T>
    void catch_up(control::Informer<T>& informer) {
        informer.store().advance(std::to_string(client.version));
    }

    // Attaches a sidecar of that pod to the registry; the sidecar ignores its grants.
    control::SessionId attach(const control::Hello& hello) {
        return *registry.attach(hello, {[](const auto&) {}, [] {}}, now());
    }

    // Delivers a report of that node's program now; pool "nvme" is ready unless `more` says otherwise.
    control::NodeOrders report_node(
        const std::string& node, const std::function<void(control::NodeReport&)>& more = {}) {
        control::NodeReport report;
        report.node = node;
        report.received_at = clock.now();
        report.received_wall = clock.wall_now();
        report.pools.resize(1);
        report.pools[0].pool = "nvme";
        report.pools[0].path = "/var/lib/stoker";
        report.pools[0].verdict = control::PoolVerdict::kReady;
        if (more) {
            more(report);
        }
        return *nodes.report(std::move(report));
    }

    [[nodiscard]] control::Moment now() const { return {clock.now(), clock.wall_now()}; }

    testing::ManualClock clock;
    FakeApiClient client;
    control::SidecarRegistry registry{{}, nullptr};
    // Makes every node belong to pool "nvme".
    control::NodeRegistry nodes{
        {},
        [](const std::string&) {
            return std::vector<control::PoolOrder>{{"nvme", "/var/lib/stoker"}};
        },
        nullptr};
    control::ClusterCache cache;
    NoTransport no_transport;
    control::EventRecorder events{no_transport, {}, clock, 1};
    control::LatestAllocation latest;
    control::SweepLedger ledger;
    control::ControllerParts parts{cache, registry, nodes, latest, ledger, client, events, clock};

private:
    template <class T>
    static const control::ObjectMeta& meta_of(const T& value) {
        return value.meta;
    }

    static const control::ObjectMeta& meta_of(const control::ObjectMeta& meta) { return meta; }

    std::uint64_t version_ = 100;
};

}  // namespace stoker::test
