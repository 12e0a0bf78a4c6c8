#include "sidecar/service/trainer_totals.h"

#include <algorithm>
#include <variant>

namespace stoker::sidecar {

namespace {

// Bytes read past the sidecar, in proportion to the samples: trainers report one sum.
Bytes past_bytes(const local::Report& report) {
    if (report.samples == 0) {
        return {};
    }
    const std::uint64_t past = std::min(report.origin_samples, report.samples);
    return Bytes{static_cast<std::uint64_t>(
        static_cast<double>(report.bytes) * static_cast<double>(past) /
        static_cast<double>(report.samples))};
}

// Adds modulo 2^64, so that no trainer can cause an overflow.
void add_time(Duration& sum, std::uint64_t nanoseconds) {
    sum =
        Duration{static_cast<Duration::rep>(static_cast<std::uint64_t>(sum.count()) + nanoseconds)};
}

std::string_view access_of(std::string_view client) {
    return client.starts_with("stoker-files") ? "files"
           : client.starts_with("stoker-s3")  ? "s3"
                                              : "sdk";
}

}  // namespace

void TrainerTotals::attach(const Session& session) {
    if (session.stream()) {
        progress_.connect(*session.stream());
    }
}

void TrainerTotals::detach(const Session& session) {
    if (session.stream()) {
        progress_.disconnect(*session.stream());
    }
}

bool TrainerTotals::on_frame(Session& session, const Frame& frame, std::uint64_t sample_count) {
    if (const auto* report = std::get_if<local::Report>(&frame.message)) {
        add(session, *report);
        return true;
    }
    if (std::holds_alternative<local::AskProbe>(frame.message)) {
        // Remembers an ended measurement: new workers in every epoch would go on measuring.
        const control::ProbeReport sum = probed();
        const bool is_measured =
            std::min(sum.bypassed.batches, sum.cached.batches) >= probe_.batches;
        session.send(is_measured ? local::Probe{} : probe_, frame.request_id);
        return true;
    }
    if (const auto* probed = std::get_if<local::Probed>(&frame.message);
        probed != nullptr && probed->id == probe_.id) {
        probed_[session.id()] = *probed;
    }
    if (session.stream()) {
        note_progress(session, frame.message, sample_count);
    }
    return false;
}

void TrainerTotals::add(const Session& session, const local::Report& report) {
    AccessTotals& access = by_access_[access_of(session.hello().client)];
    const std::uint64_t past = std::min(report.origin_samples, report.samples);
    access.node_samples += report.samples - past;
    access.origin_samples += past;
    access.bytes += Bytes{report.bytes};
    job_.epoch = std::max(job_.epoch, report.epoch);
    job_.steps += report.steps;
    job_.samples += report.samples;
    job_.bytes += Bytes{report.bytes};
    job_.fallback_samples += report.origin_samples;
    job_.fallback_bytes += past_bytes(report);
    add_time(job_.wait, report.wait_ns);
    add_time(job_.compute, report.compute_ns);
}

void TrainerTotals::note_progress(
    const Session& session, const local::Message& message, std::uint64_t sample_count) {
    const StreamId stream = *session.stream();
    if (const auto* plan = std::get_if<local::Plan>(&message)) {
        progress_.begin(
            stream, session.hello().rank, {plan->epoch, plan->sample_count, plan->start});
    } else if (const auto* begin = std::get_if<local::Begin>(&message)) {
        // The rank's share of the dataset, in samples: exact for a contract that neither skips nor
        // repeats samples, an upper bound for the others.
        const std::uint64_t world = std::max(begin->world_size, 1U);
        const std::uint64_t share = (sample_count + world - 1) / world;
        progress_.begin(stream, begin->rank, {begin->epoch, share, begin->skip});
    } else if (const auto* consumed = std::get_if<local::Consumed>(&message)) {
        progress_.read(stream, consumed->epoch, consumed->samples.size());
    }
}

void TrainerTotals::on_drawn(const Session& session, const local::Drawn& drawn) {
    if (session.stream()) {
        progress_.drawn(*session.stream(), drawn.epoch, drawn.served.size(), drawn.ended);
    }
}

void TrainerTotals::on_counted(const local::Counted& counted) {
    job_.counted.hit_samples += counted.hit_samples;
    job_.counted.hit_bytes += counted.hit_bytes;
    job_.counted.fetched_samples += counted.fetched_samples;
    job_.counted.fetched_bytes += counted.fetched_bytes;
}

void TrainerTotals::set_probe(const local::Probe& probe) {
    if (probe_.id != probe.id) {
        probed_.clear();
    }
    probe_ = probe;
}

control::ProbeReport TrainerTotals::probed() const {
    control::ProbeReport sum;
    sum.id = probe_.id;
    for (const auto& [connection, probed] : probed_) {
        sum.bypassed.batches += probed.bypassed_batches;
        add_time(sum.bypassed.time, probed.bypassed_ns);
        sum.bypassed.bytes += Bytes{probed.bypassed_bytes};
        sum.cached.batches += probed.cached_batches;
        add_time(sum.cached.time, probed.cached_ns);
        sum.cached.bytes += Bytes{probed.cached_bytes};
    }
    return sum;
}

JobTotals TrainerTotals::sum() const {
    JobTotals job = job_;
    job.probe = probed();
    const EpochProgress progress = progress_.sum();
    if (progress.samples > 0 && progress.epoch >= job.epoch) {
        job.epoch = progress.epoch;
        job.epoch_samples = progress.samples;
        job.epoch_position = progress.position;
    }
    return job;
}

}  // namespace stoker::sidecar
