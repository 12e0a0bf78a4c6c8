#include "sidecar/service/monitor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <cpprest/json.h>

#include "common/base/accept_backoff.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kLookInterval = std::chrono::seconds{1};
constexpr Duration kLookWhileWaiting = std::chrono::milliseconds{250};  // while a pin is awaited
constexpr Duration kStuckAfter = std::chrono::seconds{15};

// Names of an enum's values, in their order.
constexpr std::array kRoles{"seeking", "leading", "following"};
constexpr std::array kPermissions{"asking", "proven", "refused", "failed"};
constexpr std::array kStates{"unknown", "listing", "serving", "failed"};

template <class Enum>
web::json::value json_word(const auto& words, Enum value) {
    return web::json::value::string(words.at(static_cast<std::size_t>(value)));
}

std::int64_t seconds_of(Duration duration) {
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

web::json::value json_number(Bytes bytes) {
    return bytes.is_unlimited() ? web::json::value::string("unlimited")
                                : web::json::value::number(bytes.count());
}

void add_peers(web::json::value& json, const LeaderStatus& status) {
    json["peers"] = web::json::value::number(static_cast<std::uint64_t>(status.peer_members));
    json["placement"] = web::json::value::string(status.by_reads ? "known reads" : "hash");
    json["peerAddress"] = web::json::value::string(status.peer_address);
    json["peerSamples"] = web::json::value::number(status.peer_samples);
    json["peerBytes"] = json_number(status.peer_bytes_read);
    json["peerHedges"] = web::json::value::number(status.peer_hedges);
    json["peerFailures"] = web::json::value::number(status.peer_failures);
    json["peerConnectFailures"] = web::json::value::number(status.peer_connect_failures);
    json["takenOverSamples"] = web::json::value::number(status.taken_over_samples);
    json["takeOversLacked"] = web::json::value::number(status.take_overs_lacked);
    json["takeOversFailed"] = web::json::value::number(status.take_overs_failed);
}

web::json::value leader_json(const LeaderStatus& status) {
    auto json = web::json::value::object(true);
    json["state"] = json_word(kStates, status.manifest_state);
    json["error"] = web::json::value::string(status.error);
    json["objectsListed"] = web::json::value::number(status.objects_listed);
    json["revision"] = web::json::value::string(status.revision);
    json["samples"] = web::json::value::number(status.samples);
    json["bytes"] = json_number(status.total_bytes);
    json["grantedBytes"] = json_number(status.granted_bytes);
    json["residentBytes"] = json_number(status.usage.resident_bytes);
    json["residentSamples"] = web::json::value::number(status.usage.resident_samples);
    json["windowBytes"] = json_number(status.usage.window_bytes);
    json["windowSizeBytes"] = json_number(status.window_size);
    json["windowLacksBytes"] = json_number(status.window_lacks_bytes);
    json["inFlightBytes"] = json_number(status.bytes.in_flight);
    json["originConcurrency"] = web::json::value::number(status.origin_concurrency);
    json["originRequests"] = web::json::value::number(status.origin_requests);
    json["originBytes"] = json_number(status.origin_bytes_read);
    json["demandedSamples"] = web::json::value::number(status.counters.demanded_samples);
    json["fetchedSamples"] = web::json::value::number(status.counters.stored_samples);
    json["corruptSamples"] = web::json::value::number(status.counters.corrupt_samples);
    if (status.disk_limit) {
        json["diskLimitBytes"] = json_number(status.disk_limit->resident);
    }
    json["manifestsListed"] = web::json::value::number(status.manifests_listed);
    json["manifestsTaken"] = web::json::value::number(status.manifests_taken);
    add_peers(json, status);
    json["admitting"] = web::json::value::boolean(status.admitting);
    json["steppedAside"] = web::json::value::boolean(status.aside);
    return json;
}

web::json::value job_json(const JobTotals& job) {
    auto json = web::json::value::object(true);
    json["epoch"] = web::json::value::number(job.epoch);
    json["steps"] = web::json::value::number(job.steps);
    json["samples"] = web::json::value::number(job.samples);
    json["bytes"] = json_number(job.bytes);
    json["hitSamples"] = web::json::value::number(job.counted.hit_samples);
    json["hitBytes"] = web::json::value::number(job.counted.hit_bytes);
    json["fetchedSamples"] = web::json::value::number(job.counted.fetched_samples);
    json["fetchedBytes"] = web::json::value::number(job.counted.fetched_bytes);
    json["originSamples"] = web::json::value::number(job.fallback_samples);
    json["epochSamples"] = web::json::value::number(job.epoch_samples);
    json["epochPosition"] = web::json::value::number(job.epoch_position);
    return json;
}

// The manifest state of a dataset that we do not lead.
control::ManifestState state_without_lead(const DatasetNode& node) {
    if (!node.error().empty()) {
        return control::ManifestState::kFailed;
    }
    return node.is_serving() ? control::ManifestState::kReady : control::ManifestState::kListing;
}

// Reports the revision to the operator, which pins the first one reported and sends its
// ManifestMarks to the other ranks. So a follower reports a revision that is to be pinned only once
// it has the marks.
void tell_revision(const DatasetNode& node, control::DatasetReport& out) {
    const auto revision = node.read_revision();
    if (!revision) {
        return;
    }
    if (node.leader() == nullptr && node.config().pinned) {
        const auto* marks = node.followed_marks();
        if (marks == nullptr) {
            return;
        }
        out.marks = *marks;
    }
    out.read_revision = domain::to_string(*revision);
}

control::DatasetReport dataset_report(const DatasetNode& node) {
    control::DatasetReport out;
    if (node.leader() != nullptr) {
        out = node.leader()->status();
    } else {
        out.manifest_state = state_without_lead(node);
        out.error = node.error();
    }
    add_fetched(out, node.past_leads());
    out.name = node.config().name;
    out.dataset_uid = node.config().uid;
    out.granted_bytes = node.grant().resident_bytes;
    const JobTotals job = node.job();
    out.cache_bytes_read = Bytes{job.counted.hit_bytes};
    out.hit_samples = job.counted.hit_samples;
    out.miss_bytes_read = Bytes{job.counted.fetched_bytes} + job.fallback_bytes;
    out.miss_samples = job.counted.fetched_samples + job.fallback_samples;
    tell_revision(node, out);
    out.origin_change = node.origin_change();
    return out;
}

// One line per dataset that has a problem, for /readyz while sessions are accepted.
std::string troubles(const Sidecar& sidecar) {
    std::string lines;
    for (const auto& node : sidecar.nodes()) {
        if (const std::string error = node->error(); !error.empty()) {
            lines += node->config().name + ": " + error + "\n";
        }
    }
    return lines;
}

void add(control::ProbeSide& sum, const control::ProbeSide& more) {
    sum.batches += more.batches;
    sum.time += more.time;
    sum.bytes += more.bytes;
}

// Adds up totals, but takes the progress from the newest epoch: another dataset, such as one for
// validation, may count its own epochs.
void add(control::TrainerReport& sum, const control::TrainerReport& more) {
    sum.samples += more.samples;
    sum.bytes += more.bytes;
    sum.steps += more.steps;
    sum.wait += more.wait;
    sum.compute += more.compute;
    sum.fallback_samples += more.fallback_samples;
    if (more.epoch > sum.epoch) {
        sum.epoch = more.epoch;
        sum.epoch_samples = sum.epoch_position = 0;
    }
    if (more.epoch == sum.epoch) {
        sum.epoch_samples += more.epoch_samples;
        sum.epoch_position += more.epoch_position;
    }
    sum.probe.id = more.probe.id;  // all datasets have the same probe
    add(sum.probe.bypassed, more.probe.bypassed);
    add(sum.probe.cached, more.probe.cached);
}

}  // namespace

Monitor::Monitor(
    const Sidecar& sidecar,
    EventLoop& loop,
    metrics::Registry& registry,
    config::AddressRanges readers)
    : sidecar_(sidecar),
      loop_(loop),
      registry_(registry),
      readers_(std::move(readers)),
      metrics_(registry),
      process_(registry),
      timer_(loop) {
    look_again();
}

void Monitor::look() {
    for (const auto& node : sidecar_.nodes()) {
        metrics_.update(*node);
    }
    metrics_.set_sessions(sidecar_.session_count());
    metrics_.set_accept_failures(AcceptBackoff::failures());
    Seen seen{
        status_json(sidecar_),
        link_report(sidecar_),
        troubles(sidecar_),
        std::ranges::all_of(sidecar_.nodes(), [](const auto& node) { return node->is_ready(); }),
        loop_.now()};
    *seen_.lock() = std::move(seen);
}

void Monitor::look_again() {
    look();
    const Duration interval = seen_.lock()->report.awaits_pin ? kLookWhileWaiting : kLookInterval;
    timer_.run_in(interval, [this] { look_again(); });
}

http::ServerResponse Monitor::answer(const http::ServerRequest& request) const {
    http::ServerResponse response;
    const auto path = request.path();
    const bool probe = path == "/healthz" || path == "/readyz";
    const bool told =
        config::is_loopback_peer(request.peer) || readers_.contains_peer(request.peer);
    if (!told && !probe) {
        response.status = 403;
        response.body =
            "to allow an address to read more, add it to http.readers of the sidecar, or to "
            "sidecar.metricsReaders of the chart\n";
    } else if (path == "/metrics") {
        process_.collect();
        response.content_type = metrics::Registry::kContentType;
        response.body = registry_.expose();
    } else if (path == "/status") {
        response.content_type = "application/json";
        response.body = seen_.lock()->status_json;
    } else if (probe) {
        const bool stuck = loop_.clock().now() - seen_.lock()->at > kStuckAfter;
        const bool ready = path == "/healthz" || seen_.lock()->ready;
        response.status = stuck || !ready ? 503 : 200;
        response.body = stuck ? "the event loop is stuck\n" : ready ? "ok\n" : "waiting\n";
        response.body += told ? seen_.lock()->troubles : "";
    } else {
        response.status = 404;
        response.body = "known paths: /metrics, /healthz, /readyz, /status\n";
    }
    return response;
}

LinkReport Monitor::report() const {
    return seen_.lock()->report;
}

std::string status_json(const Sidecar& sidecar) {
    auto datasets = web::json::value::array();
    for (std::size_t i = 0; i < sidecar.nodes().size(); ++i) {
        const DatasetNode& node = *sidecar.nodes()[i];
        auto json = web::json::value::object(true);
        json["name"] = web::json::value::string(node.config().name);
        json["role"] = json_word(kRoles, node.role());
        json["serving"] = web::json::value::boolean(node.is_serving());
        json["error"] = web::json::value::string(node.error());
        json["leaderSilentSeconds"] = web::json::value::number(seconds_of(node.leader_silence()));
        json["permission"] = node.permission() ? json_word(kPermissions, *node.permission())
                                               : web::json::value::string("not asked");
        json["job"] = job_json(node.job());
        if (node.leader() != nullptr) {
            json["leader"] = leader_json(node.leader()->status());
        }
        datasets[i] = std::move(json);
    }
    auto json = web::json::value::object(true);
    json["version"] = web::json::value::string(STOKER_VERSION);
    json["sessions"] =
        web::json::value::number(static_cast<std::uint64_t>(sidecar.session_count()));
    json["datasets"] = std::move(datasets);
    return json.serialize() + "\n";
}

LinkReport link_report(const Sidecar& sidecar) {
    LinkReport report;
    for (const auto& node : sidecar.nodes()) {
        report.datasets.push_back(dataset_report(*node));
        add(report.trainer, node->job());
        report.awaits_pin = report.awaits_pin || node->awaits_pin();
    }
    return report;
}

}  // namespace stoker::sidecar
