#include "operator/agents/report_codec.h"

#include <limits>

#include "proto/control/v1/control.pb.h"

namespace stoker::control {

namespace {

ManifestState decode(v1::ManifestState state) {
    switch (state) {
        case v1::MANIFEST_STATE_LISTING:
            return ManifestState::kListing;
        case v1::MANIFEST_STATE_READY:
            return ManifestState::kReady;
        case v1::MANIFEST_STATE_FAILED:
            return ManifestState::kFailed;
        default:  // a newer sidecar may know more
            return ManifestState::kUnknown;
    }
}

// A number beyond the type becomes negative, which report_rules refuses.
Duration decode_nanoseconds(std::uint64_t count) {
    return Duration{static_cast<Duration::rep>(count)};
}

void decode_revision(const v1::DatasetReport& in, DatasetReport& out) {
    out.read_revision = in.read_revision();
    out.marks.samples = in.marks().samples();
    out.marks.digests = {in.marks().digests().begin(), in.marks().digests().end()};
    if (in.has_origin_change()) {
        out.origin_change = OriginChange{in.origin_change().key(), in.origin_change().keys()};
    }
    out.changed_key = in.changed_key();
}

DatasetReport decode(const v1::DatasetReport& in) {
    DatasetReport out;
    out.name = in.name();
    out.dataset_uid = in.dataset_uid();
    out.leader = in.leader();
    out.manifest_state = decode(in.manifest_state());
    out.error = in.error();
    out.objects_listed = in.objects_listed();
    out.revision = in.revision();
    out.samples = in.samples();
    out.total_bytes = Bytes{in.total_bytes()};
    out.resident_bytes = Bytes{in.resident_bytes()};
    out.resident_samples = in.resident_samples();
    out.window_bytes = Bytes{in.window_bytes()};
    out.granted_bytes = Bytes{in.granted_bytes()};
    out.cache_bytes_read = Bytes{in.cache_bytes_read()};
    out.origin_bytes_read = Bytes{in.origin_bytes_read()};
    out.origin_requests = in.origin_requests();
    out.hit_samples = in.hit_samples();
    out.miss_samples = in.miss_samples();
    out.corrupt_samples = in.corrupt_samples();
    out.admitting = in.admitting();
    out.origin_request_time = decode_nanoseconds(in.origin_request_ns());
    for (const v1::RankSketch& sketch : in.sketches()) {
        out.sketches.push_back(
            {sketch.training_job_uid(),
             sketch.revision(),
             {sketch.masses().begin(), sketch.masses().end()},
             sketch.volume()});
    }
    out.miss_bytes_read = Bytes{in.miss_bytes_read()};
    if (in.has_disk_limit()) {
        const v1::DiskLimit& limit = in.disk_limit();
        out.disk_limit = DiskLimit{Bytes{limit.resident_bytes()}, Bytes{limit.kept_free_bytes()}};
    }
    decode_revision(in, out);
    return out;
}

ProbeReport decode(const v1::ProbeResult& in) {
    ProbeReport out;
    out.id = in.id();
    out.bypassed = {
        in.bypassed_batches(), decode_nanoseconds(in.bypassed_ns()), Bytes{in.bypassed_bytes()}};
    out.cached = {
        in.cached_batches(), decode_nanoseconds(in.cached_ns()), Bytes{in.cached_bytes()}};
    return out;
}

TrainerReport decode(const v1::JobReport& in) {
    TrainerReport out;
    out.epoch = in.epoch();
    out.samples = in.samples();
    out.bytes = Bytes{in.bytes()};
    out.steps = in.steps();
    out.wait = decode_nanoseconds(in.wait_ns());
    out.compute = decode_nanoseconds(in.compute_ns());
    out.fallback_samples = in.fallback_samples();
    out.epoch_samples = in.epoch_samples();
    out.epoch_position = in.epoch_position();
    out.probe = decode(in.probe());
    out.epochs = in.epochs();
    return out;
}

void encode(const AgentPin& pin, v1::RevisionPin& out) {
    out.set_dataset_uid(pin.dataset_uid);
    out.set_revision(pin.revision);
    if (!pin.marks.digests.empty()) {
        out.mutable_marks()->set_samples(pin.marks.samples);
        out.mutable_marks()->mutable_digests()->Add(
            pin.marks.digests.begin(), pin.marks.digests.end());
    }
}

}  // namespace

AgentHello decode(const v1::Hello& hello) {
    AgentHello out;
    out.namespace_name = hello.namespace_();
    out.pod = hello.pod();
    out.node = hello.node();
    out.training_job = hello.training_job();
    out.training_job_uid = hello.training_job_uid();
    out.rank = hello.rank();
    out.version = hello.version();
    for (const v1::DatasetMount& mount : hello.datasets()) {
        out.datasets.push_back({mount.name(), mount.dataset_uid()});
    }
    return out;
}

ReportBody decode(const v1::Report& report) {
    ReportBody out;
    out.sequence = report.sequence();
    for (const v1::DatasetReport& dataset : report.datasets()) {
        out.datasets.push_back(decode(dataset));
    }
    out.trainer = decode(report.job());
    return out;
}

v1::OperatorMessage encode(
    const std::vector<AgentGrant>& grants,
    const std::optional<AgentProbe>& probe,
    const std::vector<AgentPin>& pins) {
    v1::OperatorMessage message;
    for (const AgentPin& pin : pins) {
        encode(pin, *message.add_pins());
    }
    if (probe) {
        message.mutable_probe()->set_id(probe->id);
        message.mutable_probe()->set_batches(probe->batches);
    }
    for (const AgentGrant& grant : grants) {
        v1::Grant* out = message.add_grants();
        out->set_dataset_uid(grant.dataset_uid);
        out->set_resident_bytes(grant.resident_bytes.count());
        out->set_valid_seconds(grant.valid_seconds);
        out->set_origin_bytes_per_second(grant.origin_bytes_per_second);
        out->set_reason(grant.reason);
        for (const JobWeight& weight : grant.weights) {
            v1::JobWeight* weighed = out->add_weights();
            weighed->set_training_job_uid(weight.job_uid);
            weighed->set_weight(weight.weight);
        }
    }
    return message;
}

}  // namespace stoker::control
