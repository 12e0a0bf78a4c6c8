#include "sidecar/control/control_messages.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "common/base/utf8.h"
#include "proto/control/v1/control.pb.h"

namespace stoker::sidecar {

namespace {

namespace wire = ::stoker::control::v1;

wire::ManifestState stage(ManifestStage value) {
    switch (value) {
        case ManifestStage::kListing:
            return wire::MANIFEST_STATE_LISTING;
        case ManifestStage::kReady:
            return wire::MANIFEST_STATE_READY;
        case ManifestStage::kFailed:
            return wire::MANIFEST_STATE_FAILED;
    }
    return wire::MANIFEST_STATE_UNSPECIFIED;
}

// Masses in one report: 4 KiB each, well within what an operator takes in one message.
constexpr int kMassesPerReport = 16;

// What does not fit comes with the next report; until then the older revision stands.
void add_sketches(
    wire::DatasetReport& out, const LinkDataset& in, ToldSketches& told, int& masses_left) {
    for (const LinkSketch& sketch : in.sketches) {
        std::uint64_t& known = told[{in.uid, sketch.job_uid}];
        const bool is_news = known != sketch.revision && masses_left > 0;
        known = is_news ? sketch.revision : known;
        if (known == 0) {
            continue;
        }
        wire::RankSketch& sent = *out.add_sketches();
        sent.set_training_job_uid(sketch.job_uid);
        sent.set_revision(known);
        sent.set_volume(sketch.volume);
        if (is_news) {
            --masses_left;
            sent.mutable_masses()->Add(sketch.masses.begin(), sketch.masses.end());
        }
    }
}

// A key may have any bytes.
constexpr std::size_t kKeyBytesMax = 1024;

std::string key_text(const std::string& key) {
    return std::string{utf8_prefix(printable_utf8(key), kKeyBytesMax)};
}

void fill_revision(wire::DatasetReport& out, const LinkDataset& in) {
    out.set_read_revision(in.read_revision);
    if (!in.marks.digests.empty()) {
        out.mutable_marks()->set_samples(in.marks.samples);
        out.mutable_marks()->mutable_digests()->Add(
            in.marks.digests.begin(), in.marks.digests.end());
    }
    if (in.origin_change) {
        out.mutable_origin_change()->set_key(key_text(in.origin_change->key));
        out.mutable_origin_change()->set_keys(in.origin_change->keys);
    }
    out.set_changed_key(key_text(in.changed_key));
}

void fill(wire::DatasetReport& out, const LinkDataset& in) {
    out.set_name(in.name);
    out.set_dataset_uid(in.uid);
    out.set_leader(in.leader);
    out.set_manifest_state(stage(in.stage));
    out.set_error(in.error);
    out.set_objects_listed(in.objects_listed);
    out.set_revision(in.revision);
    out.set_samples(in.samples);
    out.set_total_bytes(in.total_bytes.count());
    out.set_resident_bytes(in.resident_bytes.count());
    out.set_resident_samples(in.resident_samples);
    out.set_window_bytes(in.window_bytes.count());
    out.set_granted_bytes(in.granted_bytes.count());
    out.set_cache_bytes_read(in.cache_bytes_read.count());
    out.set_origin_bytes_read(in.origin_bytes_read.count());
    out.set_origin_requests(in.origin_requests);
    out.set_hit_samples(in.hit_samples);
    out.set_miss_samples(in.miss_samples);
    out.set_corrupt_samples(in.corrupt_samples);
    out.set_admitting(in.admitting);
    out.set_origin_request_ns(static_cast<std::uint64_t>(in.origin_request_time.count()));
    out.set_miss_bytes_read(in.miss_bytes_read.count());
    if (in.disk_limit) {
        wire::DiskLimit& limit = *out.mutable_disk_limit();
        limit.set_resident_bytes(in.disk_limit->resident.count());
        limit.set_kept_free_bytes(in.disk_limit->kept_free.count());
    }
    fill_revision(out, in);
}

void fill(wire::ProbeResult& out, const LinkProbeResult& in) {
    out.set_id(in.id);
    out.set_bypassed_batches(in.bypassed.batches);
    out.set_bypassed_ns(static_cast<std::uint64_t>(in.bypassed.time.count()));
    out.set_bypassed_bytes(in.bypassed.bytes.count());
    out.set_cached_batches(in.cached.batches);
    out.set_cached_ns(static_cast<std::uint64_t>(in.cached.time.count()));
    out.set_cached_bytes(in.cached.bytes.count());
}

void fill(wire::JobReport& out, const LinkTrainer& in) {
    out.set_epoch(in.epoch);
    out.set_samples(in.samples);
    out.set_bytes(in.bytes.count());
    out.set_steps(in.steps);
    out.set_wait_ns(static_cast<std::uint64_t>(in.wait.count()));
    out.set_compute_ns(static_cast<std::uint64_t>(in.compute.count()));
    out.set_fallback_samples(in.fallback_samples);
    out.set_epoch_samples(in.epoch_samples);
    out.set_epoch_position(in.epoch_position);
    out.set_epochs(in.epochs);
    if (in.probe.id != 0) {
        fill(*out.mutable_probe(), in.probe);
    }
}

std::optional<domain::RevisionId> parse_revision(std::string_view digits) {
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    const bool is_whole = digits.size() == 16 && parsed.ec == std::errc{} &&
                          parsed.ptr == digits.data() + digits.size();
    return is_whole ? std::optional{domain::RevisionId{value}} : std::nullopt;
}

}  // namespace

wire::SidecarMessage hello_message(
    const JobConfig& job, const std::vector<DatasetConfig>& datasets) {
    wire::SidecarMessage message;
    wire::Hello& hello = *message.mutable_hello();
    hello.set_namespace_(job.pod_namespace);
    hello.set_pod(job.pod);
    hello.set_node(job.node);
    hello.set_training_job(job.training_job);
    hello.set_training_job_uid(job.training_job_uid);
    hello.set_rank(static_cast<std::int32_t>(job.rank));
    hello.set_version(STOKER_VERSION);
    for (const DatasetConfig& dataset : datasets) {
        wire::DatasetMount& mount = *hello.add_datasets();
        mount.set_name(dataset.name);
        mount.set_dataset_uid(dataset.uid);
    }
    return message;
}

wire::SidecarMessage report_message(
    const LinkReport& report, std::uint64_t sequence, ToldSketches& told) {
    wire::SidecarMessage message;
    wire::Report& out = *message.mutable_report();
    out.set_sequence(sequence);
    int masses_left = kMassesPerReport;
    for (const LinkDataset& dataset : report.datasets) {
        wire::DatasetReport& sent = *out.add_datasets();
        fill(sent, dataset);
        add_sketches(sent, dataset, told, masses_left);
    }
    fill(*out.mutable_job(), report.trainer);
    return message;
}

LinkGrant plain_grant(const wire::Grant& grant) {
    LinkGrant out;
    out.dataset_uid = grant.dataset_uid();
    out.resident_bytes = Bytes{grant.resident_bytes()};
    out.valid = std::chrono::seconds{grant.valid_seconds()};
    out.origin_bytes_per_second = grant.origin_bytes_per_second();
    out.reason = grant.reason();
    for (const wire::JobWeight& weight : grant.weights()) {
        if (std::isfinite(weight.weight()) && weight.weight() >= 0) {
            out.weights.push_back({weight.training_job_uid(), weight.weight()});
        }
    }
    return out;
}

std::vector<LinkPin> plain_pins(const wire::OperatorMessage& message) {
    std::vector<LinkPin> out;
    for (const wire::RevisionPin& pin : message.pins()) {
        const auto revision = parse_revision(pin.revision());
        if (!revision) {
            continue;
        }
        LinkPin& plain = out.emplace_back();
        plain.dataset_uid = pin.dataset_uid();
        plain.revision = *revision;
        const auto& digests = pin.marks().digests();
        if (digests.size() <= static_cast<int>(domain::kManifestMarksMax)) {
            plain.marks = {pin.marks().samples(), {digests.begin(), digests.end()}};
        }
    }
    return out;
}

}  // namespace stoker::sidecar
