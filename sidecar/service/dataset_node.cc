#include "sidecar/service/dataset_node.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "common/log/log.h"
#include "sidecar/service/begin_frame.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kRestMin = std::chrono::seconds{5};
constexpr std::size_t kPartingMax = 1024;

// Trainers tell samples by source, but bytes in one sum: divided alike.
Bytes past_bytes(const local::Report& report) {
    if (report.samples == 0) {
        return {};
    }
    const std::uint64_t past = std::min(report.origin_samples, report.samples);
    return Bytes{static_cast<std::uint64_t>(
        static_cast<double>(report.bytes) * static_cast<double>(past) /
        static_cast<double>(report.samples))};
}

// Modulo 2^64, whatever a trainer says.
void add(Duration& sum, std::uint64_t nanoseconds) {
    sum =
        Duration{static_cast<Duration::rep>(static_cast<std::uint64_t>(sum.count()) + nanoseconds)};
}

}  // namespace

void add_fetched(control::DatasetReport& sum, const control::DatasetReport& more) {
    sum.origin_requests += more.origin_requests;
    sum.origin_bytes_read += more.origin_bytes_read;
    sum.origin_request_time += more.origin_request_time;
    sum.corrupt_samples += more.corrupt_samples;
}

DatasetNode::DatasetNode(const SidecarParts& parts, const DatasetConfig& config, Origin& origin)
    : parts_(parts),
      config_(config),
      origin_(origin),
      grant_{first_grant(parts, config)},
      weights_(config.weights),
      gate_(config.pinned && parts.operator_grants),
      gate_timer_(parts.loop),
      seek_timer_(parts.loop),
      watch_(
          parts.loop, [this] { return leader_door(); }, [this] { on_watch(); }),
      proof_(parts, config, origin, [this] { admit_relays(); }),
      rest_(kRestMin),
      tasks_(parts.loop) {
    seek();
}

void DatasetNode::attach(Session& session) {
    if (session.stream()) {
        progress_.connect(*session.stream());
    }
    if (role_ == Role::kLeading) {
        leader_->attach(session);
        return;
    }
    if (const std::string why = no_leader(); !why.empty() && !must_wait()) {
        session.refuse({ErrorCode::kUnavailable, why});
        return;
    }
    auto relay = std::make_unique<Relay>(
        parts_.loop,
        session,
        config_.client_directory,
        *this,
        Relay::Callbacks{
            [this] { on_lost(); },
            [this] { admit_relays_soon(); },
            [this] { return must_wait(); }});
    relays_.emplace(session.id(), std::move(relay));
    session.send_listing(0);
    seek_later(Duration{});
}

// Every frame is checked here, whoever serves it: a bad one ends its own session, not the one to
// the leader.
void DatasetNode::on_frame(Session& session, Frame frame) {
    const auto type = static_cast<local::FrameType>(frame.message.index() + 1);
    if (!local::is_client_frame(type)) {
        const auto why =
            fmt::format("unexpected frame type {} from a client", static_cast<unsigned>(type));
        session.send_error({ErrorCode::kInvalidArgument, why}, frame.request_id);
        session.hang_up();
        return;
    }
    if (answer_ourselves(session, frame)) {
        return;
    }
    if (auto* begin = std::get_if<local::Begin>(&frame.message)) {
        if (const auto limited = limit_begin(*begin, config_.contract); !limited) {
            session.send_error(limited.error(), frame.request_id);
            return;
        }
        stamp_job(*begin, parts_.job_uid);
    }
    note_progress(session, frame.message);
    if (std::holds_alternative<local::Consumed>(frame.message)) {
        frame.request_id = 0;  // the answer is for us, not for the client
    }
    const auto relay = relays_.find(session.id());
    if (relay != relays_.end()) {
        relay->second->on_request(std::move(frame));
    } else if (leader_ != nullptr) {
        leader_->on_frame(session, std::move(frame));
    } else {
        session.hang_up();
    }
}

// Ours, whoever leads: the operator hears of a job from its own sidecar. What is measured past the
// cache concerns the leader, too.
bool DatasetNode::answer_ourselves(Session& session, const Frame& frame) {
    if (const auto* report = std::get_if<local::Report>(&frame.message)) {
        on_report(*report);
        return true;
    }
    if (std::holds_alternative<local::AskProbe>(frame.message)) {
        session.send(is_measured() ? local::Probe{} : probe_, frame.request_id);
        return true;
    }
    if (const auto* probed = std::get_if<local::Probed>(&frame.message)) {
        if (probed->id == probe_.id) {
            probed_[session.id()] = *probed;
        }
    }
    return false;
}

void DatasetNode::set_probe(const local::Probe& probe) {
    if (probe_.id != probe.id) {
        probed_.clear();
    }
    probe_ = probe;
}

// New workers in every epoch must not measure for ever.
bool DatasetNode::is_measured() const {
    const control::ProbeReport sum = probed();
    return sum.bypassed.batches >= probe_.batches && sum.cached.batches >= probe_.batches;
}

control::ProbeReport DatasetNode::probed() const {
    control::ProbeReport sum;
    sum.id = probe_.id;
    for (const auto& [connection, probed] : probed_) {
        sum.bypassed.batches += probed.bypassed_batches;
        add(sum.bypassed.time, probed.bypassed_ns);
        sum.bypassed.bytes += Bytes{probed.bypassed_bytes};
        sum.cached.batches += probed.cached_batches;
        add(sum.cached.time, probed.cached_ns);
        sum.cached.bytes += Bytes{probed.cached_bytes};
    }
    return sum;
}

void DatasetNode::detach(Session& session) {
    if (session.stream()) {
        progress_.disconnect(*session.stream());
    }
    if (auto relay = relays_.extract(session.id())) {
        part(session.id(), std::move(relay.mapped()));
    } else if (leader_ != nullptr) {
        leader_->detach(session);
    }
}

// What the leader still has to count of the client's last words is waited for.
void DatasetNode::part(ConnectionId id, std::unique_ptr<Relay> relay) {
    if (parting_.size() >= kPartingMax) {
        return;
    }
    Relay& left = *relay;
    parting_.emplace(id, std::move(relay));
    left.part([this, id] { tasks_.post([this, id] { parting_.erase(id); }); });
}

void DatasetNode::set_grant(EngineGrant grant) {
    grant_ = grant;
    if (leader_ != nullptr) {
        leader_->set_grant(grant);
    }
}

void DatasetNode::set_weights(JobWeights weights) {
    weights_ = std::move(weights);
    if (leader_ != nullptr) {
        leader_->set_weights(weights_);
    }
}

bool DatasetNode::is_ready() const {
    return was_led_ || !must_wait();
}

bool DatasetNode::is_serving() const {
    if (leader_ != nullptr) {
        return leader_->state() == LeaderState::kServing;
    }
    return std::ranges::any_of(
        relays_, [](const auto& entry) { return entry.second->is_welcomed(); });
}

bool DatasetNode::is_in_use() const {
    const bool is_granted = grant_.valid_until && parts_.loop.now() < *grant_.valid_until;
    const bool has_guests = guest_doors_ != nullptr && guest_doors_->session_count() > 0;
    const bool has_followers = leader_server_ != nullptr && leader_server_->session_count() > 0;
    return role_ != Role::kLeading || is_granted || has_guests || has_followers;
}

void DatasetNode::stop() {
    gate_timer_.cancel();
    seek_timer_.cancel();
    watch_.stop();
    close_doors();
    if (leader_ != nullptr) {
        leader_->stop_preparing();
    }
}

void DatasetNode::on_report(const local::Report& report) {
    job_.epoch = std::max(job_.epoch, report.epoch);
    job_.steps += report.steps;
    job_.samples += report.samples;
    job_.bytes += Bytes{report.bytes};
    job_.fallback_samples += report.origin_samples;
    job_.fallback_bytes += past_bytes(report);
    add(job_.wait, report.wait_ns);
    add(job_.compute, report.compute_ns);
}

void DatasetNode::note_progress(const Session& session, const local::Message& message) {
    if (!session.stream()) {
        return;
    }
    if (const auto* plan = std::get_if<local::Plan>(&message)) {
        progress_.begin(
            *session.stream(),
            session.hello().rank,
            {plan->epoch, plan->sample_count, plan->start});
    } else if (const auto* begin = std::get_if<local::Begin>(&message)) {
        note_begin(session, *begin);
    } else if (const auto* consumed = std::get_if<local::Consumed>(&message)) {
        progress_.read(*session.stream(), consumed->epoch, consumed->samples.size());
    }
}

// A rank's share of the dataset: what it reads under a contract that neither skips nor repeats, and
// the most that it reads under the others.
void DatasetNode::note_begin(const Session& session, const local::Begin& begin) {
    const std::uint64_t world = std::max(begin.world_size, 1U);
    const std::uint64_t share = (sample_count(session) + world - 1) / world;
    progress_.begin(*session.stream(), begin.rank, {begin.epoch, share, begin.skip});
}

void DatasetNode::on_counted(const local::Counted& counted) {
    job_.counted.hit_samples += counted.hit_samples;
    job_.counted.hit_bytes += counted.hit_bytes;
    job_.counted.fetched_samples += counted.fetched_samples;
    job_.counted.fetched_bytes += counted.fetched_bytes;
}

void DatasetNode::on_drawn(const Session& session, const local::Drawn& drawn) {
    if (session.stream()) {
        progress_.drawn(*session.stream(), drawn.epoch, drawn.served.size(), drawn.ended);
    }
}

// Samples of the revision that the session reads; 0: it was not told yet.
std::uint64_t DatasetNode::sample_count(const Session& session) const {
    const auto relay = relays_.find(session.id());
    if (relay != relays_.end()) {
        return relay->second->sample_count();
    }
    return leader_ == nullptr ? 0 : leader_->sample_count();
}

JobTotals DatasetNode::job() const {
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
