#include "sidecar/service/monitor.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <cpprest/json.h>

#include "common/base/accept_backoff.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kLookInterval = std::chrono::seconds{1};
constexpr Duration kLookWhileWaiting = std::chrono::milliseconds{250};  // for a pin
constexpr Duration kStuckAfter = std::chrono::seconds{15};

const char* to_text(Role role) {
    switch (role) {
        case Role::kSeeking:
            return "seeking";
        case Role::kLeading:
            return "leading";
        case Role::kFollowing:
            return "following";
    }
    return "";
}

const char* to_text(std::optional<AccessProof::State> permission) {
    if (!permission) {
        return "not asked";
    }
    switch (*permission) {
        case AccessProof::State::kAsking:
            return "asking";
        case AccessProof::State::kProven:
            return "proven";
        case AccessProof::State::kRefused:
            return "refused";
        case AccessProof::State::kFailed:
            return "failed";
    }
    return "";
}

const char* to_text(LeaderState state) {
    switch (state) {
        case LeaderState::kPreparing:
            return "listing";
        case LeaderState::kServing:
            return "serving";
        case LeaderState::kFailed:
            return "failed";
    }
    return "";
}

std::int64_t seconds_of(Duration duration) {
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

web::json::value json_number(Bytes bytes) {
    return bytes.is_unlimited() ? web::json::value::string("unlimited")
                                : web::json::value::number(bytes.count());
}

web::json::value leader_json(const LeaderStatus& status) {
    auto json = web::json::value::object(true);
    json["state"] = web::json::value::string(to_text(status.state));
    json["error"] = web::json::value::string(status.error);
    json["objectsListed"] = web::json::value::number(status.objects_listed);
    json["revision"] = web::json::value::string(domain::to_string(status.revision));
    json["samples"] = web::json::value::number(status.samples);
    json["bytes"] = json_number(status.total_bytes);
    json["grantedBytes"] = json_number(status.granted_bytes);
    json["residentBytes"] = json_number(status.usage.resident_bytes);
    json["residentSamples"] = web::json::value::number(status.usage.resident_samples);
    json["windowBytes"] = json_number(status.usage.window_bytes);
    json["inFlightBytes"] = json_number(status.bytes.in_flight);
    json["originRequests"] = web::json::value::number(status.origin_requests);
    json["originBytes"] = json_number(status.origin_bytes);
    json["demandedSamples"] = web::json::value::number(status.counters.demanded_samples);
    json["fetchedSamples"] = web::json::value::number(status.counters.stored_samples);
    json["corruptSamples"] = web::json::value::number(status.counters.corrupt_samples);
    if (status.disk_limit) {
        json["diskLimitBytes"] = json_number(*status.disk_limit);
    }
    json["admitting"] = web::json::value::boolean(status.admitting);
    json["steppedAside"] = web::json::value::boolean(status.aside);
    return json;
}

web::json::value job_json(const JobTotals& job) {
    auto json = web::json::value::object(true);
    json["epoch"] = web::json::value::number(job.epoch);
    json["steps"] = web::json::value::number(job.steps);
    json["samples"] = web::json::value::number(job.samples);
    json["bytes"] = web::json::value::number(job.bytes);
    json["hitSamples"] = web::json::value::number(job.counted.hit_samples);
    json["hitBytes"] = web::json::value::number(job.counted.hit_bytes);
    json["fetchedSamples"] = web::json::value::number(job.counted.fetched_samples);
    json["fetchedBytes"] = web::json::value::number(job.counted.fetched_bytes);
    json["originSamples"] = web::json::value::number(job.origin_samples);
    json["epochSamples"] = web::json::value::number(job.epoch_samples);
    json["epochPosition"] = web::json::value::number(job.epoch_position);
    return json;
}

ManifestStage stage_of(const DatasetNode& node) {
    if (node.leader() == nullptr && !node.error().empty()) {
        return ManifestStage::kFailed;
    }
    if (node.leader() == nullptr) {
        return node.is_serving() ? ManifestStage::kReady : ManifestStage::kListing;
    }
    switch (node.leader()->state()) {
        case LeaderState::kPreparing:
            return ManifestStage::kListing;
        case LeaderState::kServing:
            return ManifestStage::kReady;
        case LeaderState::kFailed:
            return ManifestStage::kFailed;
    }
    return ManifestStage::kListing;
}

void add_revision(const DatasetNode& node, LinkDataset& out) {
    const auto revision = node.read_revision();
    out.read_revision = revision ? domain::to_string(*revision) : "";
    if (const auto& change = node.origin_change()) {
        out.origin_change = LinkOriginChange{change->key, change->keys};
    }
    if (node.leader() != nullptr) {
        out.marks = node.leader()->marks();
        out.changed_key = node.leader()->status().changed_key;
    }
}

LinkDataset link_dataset(const DatasetNode& node) {
    LinkDataset out;
    out.name = node.config().name;
    out.uid = node.config().uid;
    out.leader = node.leader() != nullptr;
    out.stage = stage_of(node);
    out.error = node.error();
    out.granted_bytes = node.grant().resident_bytes;
    const JobTotals job = node.job();
    out.cache_bytes_read = Bytes{job.counted.hit_bytes};
    out.hit_samples = job.counted.hit_samples;
    out.miss_bytes_read = Bytes{job.counted.fetched_bytes + job.origin_bytes};
    out.miss_samples = job.counted.fetched_samples + job.origin_samples;
    add_revision(node, out);
    if (!out.leader) {
        return out;
    }
    const LeaderStatus status = node.leader()->status();
    out.error = status.error;
    out.objects_listed = status.objects_listed;
    out.revision = status.samples == 0 ? "" : domain::to_string(status.revision);
    out.samples = status.samples;
    out.total_bytes = status.total_bytes;
    out.resident_bytes = status.usage.resident_bytes;
    out.resident_samples = status.usage.resident_samples;
    out.window_bytes = status.usage.window_bytes;
    out.origin_bytes_read = status.origin_bytes;
    out.origin_requests = status.origin_requests;
    out.corrupt_samples = status.counters.corrupt_samples;
    out.origin_request_time = status.origin_request_time;
    for (const JobSketch& sketch : status.sketches) {
        out.sketches.push_back({sketch.job_uid, sketch.revision, sketch.masses, sketch.volume});
    }
    out.admitting = status.admitting;
    if (status.disk_limit) {
        out.disk_limit = LinkDiskLimit{*status.disk_limit, status.kept_free};
    }
    return out;
}

// A line for each dataset that has one: what is wrong while sessions are accepted.
std::string troubles(const Sidecar& sidecar) {
    std::string lines;
    for (const auto& node : sidecar.nodes()) {
        if (const std::string error = node->error(); !error.empty()) {
            lines += node->config().name + ": " + error + "\n";
        }
    }
    return lines;
}

// Of the newest epoch: a dataset that is read beside it, for a validation, may count on its own.
void add_progress(const JobTotals& job, LinkTrainer& trainer) {
    if (job.epoch > trainer.epoch) {
        trainer.epoch = job.epoch;
        trainer.epoch_samples = trainer.epoch_position = 0;
    }
    if (job.epoch == trainer.epoch) {
        trainer.epoch_samples += job.epoch_samples;
        trainer.epoch_position += job.epoch_position;
    }
}

}  // namespace

Monitor::Monitor(const Sidecar& sidecar, EventLoop& loop, metrics::Registry& registry)
    : sidecar_(sidecar),
      loop_(loop),
      registry_(registry),
      metrics_(registry) {
    look_again();
}

Monitor::~Monitor() {
    loop_.cancel(timer_);
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
    timer_ = loop_.run_at(loop_.now() + interval, [this] { look_again(); });
}

http::ServerResponse Monitor::answer(const http::ServerRequest& request) const {
    http::ServerResponse response;
    const auto path = request.path();
    if (path == "/metrics") {
        response.content_type = metrics::Registry::kContentType;
        response.body = registry_.expose();
    } else if (path == "/status") {
        response.content_type = "application/json";
        response.body = seen_.lock()->status_json;
    } else if (path == "/healthz" || path == "/readyz") {
        const bool stuck = loop_.clock().now() - seen_.lock()->at > kStuckAfter;
        const bool ready = path == "/healthz" || seen_.lock()->ready;
        response.status = stuck || !ready ? 503 : 200;
        response.body = stuck    ? "the event loop is stuck\n"
                        : !ready ? "waiting\n" + seen_.lock()->troubles
                                 : "ok\n" + seen_.lock()->troubles;
    } else {
        response.status = 404;
        response.body = "there are /metrics, /healthz, /readyz and /status\n";
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
        json["role"] = web::json::value::string(to_text(node.role()));
        json["serving"] = web::json::value::boolean(node.is_serving());
        json["error"] = web::json::value::string(node.error());
        json["leaderSilentSeconds"] = web::json::value::number(seconds_of(node.leader_silence()));
        json["permission"] = web::json::value::string(to_text(node.permission()));
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

namespace {

void add_probe(LinkProbeResult& sum, const local::Probed& probed) {
    sum.id = probed.id;  // all datasets are asked the same
    sum.bypassed.batches += probed.bypassed_batches;
    sum.bypassed.time += Duration{static_cast<Duration::rep>(probed.bypassed_ns)};
    sum.bypassed.bytes += Bytes{probed.bypassed_bytes};
    sum.cached.batches += probed.cached_batches;
    sum.cached.time += Duration{static_cast<Duration::rep>(probed.cached_ns)};
    sum.cached.bytes += Bytes{probed.cached_bytes};
}

}  // namespace

LinkReport link_report(const Sidecar& sidecar) {
    LinkReport report;
    LinkTrainer& trainer = report.trainer;
    for (const auto& node : sidecar.nodes()) {
        report.datasets.push_back(link_dataset(*node));
        const JobTotals job = node->job();
        trainer.samples += job.samples;
        trainer.bytes += Bytes{job.bytes};
        trainer.steps += job.steps;
        trainer.wait += Duration{job.wait_ns};
        trainer.compute += Duration{job.compute_ns};
        trainer.fallback_samples += job.origin_samples;
        add_progress(job, trainer);
        add_probe(trainer.probe, node->probed());
        report.awaits_pin = report.awaits_pin || node->awaits_pin();
    }
    return report;
}

}  // namespace stoker::sidecar
