#include "sidecar/simulate/job_run.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::simulate {

using sidecar::ConnectionId;
using sidecar::Draw;

namespace {

constexpr std::uint64_t kConnectionsMax = 1U << 17U;  // of one job

}  // namespace

JobRun::JobRun(Setting setting, VirtualNode& node)
    : setting_(std::move(setting)),
      node_(node),
      seen_(setting_.samples),
      idle_since_(spec().start) {
    done_.contract = setting_.begin.contract;
    node_.join(setting_.job, current_);
    for (std::uint64_t batch = 0; batch <= ahead(); ++batch) {
        node_.engine().fetch().on_connect(connection_of(batch), stream());
    }
}

ConnectionId JobRun::connection_of(std::uint64_t batch) const {
    return ConnectionId{setting_.job * kConnectionsMax + batch % (ahead() + 1)};
}

std::size_t JobRun::job_of(ConnectionId connection) {
    return connection.value() / kConnectionsMax;
}

sidecar::StreamId JobRun::stream() const {
    return sidecar::StreamId{setting_.job};
}

std::optional<TimePoint> JobRun::next_event() const {
    if (is_finished()) {
        return std::nullopt;
    }
    if (room_) {
        return idle_since_;
    }
    return computed_at_;
}

void JobRun::finish_batch(TimePoint now) {
    if (!computed_at_ || *computed_at_ > now) {
        return;
    }
    const Batch batch = std::move(outstanding_.front());
    outstanding_.pop_front();
    idle_since_ = *computed_at_;
    computed_at_.reset();
    report_losses(batch);
    compute_next();
    room_ = true;
}

Status JobRun::go_on(TimePoint now) {
    if (is_finished() || !room_ || idle_since_ > now) {
        return {};
    }
    room_ = false;
    if (in_epoch_ && drained_ && outstanding_.empty()) {
        end_epoch(now);
        if (is_finished()) {
            return {};
        }
    }
    if (!in_epoch_) {
        STOKER_TRY_VOID(begin_epoch(now));
    }
    read_due(now);
    while (!drained_ && outstanding_.size() <= ahead() && ask(now)) {
    }
    if (drained_ && outstanding_.empty()) {
        room_ = true;  // if the tail is empty, the epoch ends at once
    }
    return {};
}

Status JobRun::begin_epoch(TimePoint now) {
    in_epoch_ = true;
    drained_ = false;
    epoch_began_ = now;
    current_ = {};
    current_.epoch = epoch_;
    seen_.assign(seen_.size(), false);
    if (setting_.losses != nullptr) {
        setting_.losses->begin_epoch(epoch_);
    }
    if (setting_.sampler == nullptr) {
        return begin_contract(now);
    }
    begin_own_order(now);
    return {};
}

Status JobRun::begin_contract(TimePoint now) {
    local::Begin begin = setting_.begin;
    begin.epoch = epoch_;
    if (!done_.epochs.empty() && done_.epochs.back().time > Duration::zero()) {
        const EpochFigures& last = done_.epochs.back();
        begin.parameters.push_back(
            {"waiting",
             static_cast<double>(last.waited.count()) / static_cast<double>(last.time.count())});
    }
    sidecar::Effects effects;
    STOKER_TRY_VOID(node_.engine().begin({connection_of(0), stream()}, begin, {}, now, effects));
    node_.apply(effects, setting_.job, now);
    return {};
}

void JobRun::begin_own_order(TimePoint now) {
    setting_.sampler->begin_epoch(0, epoch_, 0);
    if (!setting_.plans) {
        return;
    }
    std::vector<SampleIndex> order;
    setting_.sampler->foresee(0, setting_.samples, order);
    auto plan = sidecar::StreamPlan::make(epoch_, std::move(order), 0, setting_.samples);
    STOKER_CHECK(plan.has_value(), "the order must name samples of the dataset");
    node_.apply(
        node_.engine().fetch().on_plan(connection_of(0), *std::move(plan), now), setting_.job, now);
}

void JobRun::end_epoch(TimePoint now) {
    in_epoch_ = false;
    if (++epoch_ == setting_.scenario->epochs) {
        leave(now);
    }
    current_.complete = true;
    current_.time = now - epoch_began_;
    done_.epochs.push_back(current_);
}

void JobRun::leave(TimePoint now) {
    node_.engine().leave(stream());
    for (std::uint64_t batch = 0; batch <= ahead(); ++batch) {
        node_.apply(
            node_.engine().fetch().on_disconnect(connection_of(batch), now), setting_.job, now);
    }
    node_.leave(setting_.job);
}

// Requests the next batch. False: nothing was left to request.
bool JobRun::ask(TimePoint now) {
    Batch& batch = outstanding_.emplace_back();
    batch.number = next_batch_;
    draw(batch, now);
    if (batch.samples.empty()) {
        outstanding_.pop_back();
        return false;
    }
    ++next_batch_;
    read_due(now);
    return true;
}

// Starts workers on the batches that are close enough to the one being computed.
void JobRun::read_due(TimePoint now) {
    const std::size_t due =
        std::min<std::size_t>(outstanding_.size(), std::size_t{setting_.scenario->read_ahead} + 1);
    for (std::size_t i = 0; i < due; ++i) {
        if (!std::exchange(outstanding_[i].begun, true)) {
            request(outstanding_[i], now);
        }
    }
}

void JobRun::draw(Batch& batch, TimePoint now) {
    const std::uint32_t count = setting_.scenario->batch;
    if (setting_.sampler != nullptr) {
        std::vector<Draw> draws;
        setting_.sampler->draw(0, count, draws);
        drained_ = draws.size() < count;
        for (const Draw& draw : draws) {
            batch.samples.push_back(draw.served);
            note_drawn(draw.served, draw.kind);
        }
        return;
    }
    sidecar::Effects effects;
    const auto drawn =
        node_.engine().draw(connection_of(0), stream(), {epoch_, count}, now, effects);
    STOKER_CHECK(drawn.has_value(), "the trainer must have begun the epoch in which it draws");
    drained_ = drawn->ended;
    for (std::size_t i = 0; i < drawn->served.size(); ++i) {
        batch.samples.push_back(static_cast<SampleIndex>(drawn->served[i]));
        note_drawn(
            batch.samples.back(),
            static_cast<Draw::Kind>(drawn->kinds[i] & ~unsigned{local::kKindOnNode}));
    }
    node_.apply(effects, setting_.job, now);
}

void JobRun::note_drawn(SampleIndex sample, Draw::Kind kind) {
    ++current_.requested;
    ++(seen_[sample] ? current_.repeated : current_.distinct);
    seen_[sample] = true;
    current_.substituted += kind == Draw::Kind::kSubstituted ? 1 : 0;
}

void JobRun::request(Batch& batch, TimePoint now) {
    std::vector<SampleIndex> here;
    for (const SampleIndex sample : batch.samples) {
        const bool is_here =
            node_.engine().fetch().sample(sample).state == sidecar::SampleState::kStored;
        (is_here ? here : batch.missing).push_back(sample);
    }
    read(batch.number, here, now);
    if (batch.missing.empty()) {
        batch.ready = now;
        compute_next();
        return;
    }
    node_.apply(
        node_.engine().fetch().on_fetch(
            connection_of(batch.number), batch.number, batch.missing, now),
        setting_.job,
        now);
}

void JobRun::on_reply(const sidecar::FetchReply& reply, TimePoint now) {
    const auto found = std::ranges::find(outstanding_, reply.request_id, &Batch::number);
    STOKER_CHECK(found != outstanding_.end(), "an answer to a batch that was not requested");
    TimePoint ready = now;
    for (std::size_t i = 0; i < reply.outcomes.size(); ++i) {
        if (reply.outcomes[i] != sidecar::FetchOutcome::kReady) {
            ready = std::max(ready, node_.read_at_origin(found->missing[i], setting_.job, now));
        }
    }
    found->ready = ready;
    read(found->number, found->missing, now);
    compute_next();
}

void JobRun::read(std::uint64_t batch, const std::vector<SampleIndex>& samples, TimePoint now) {
    if (samples.empty()) {
        return;
    }
    sidecar::ReadCounts counts;
    node_.apply(
        node_.engine().on_consumed(connection_of(batch), stream(), epoch_, samples, now, counts),
        setting_.job,
        now);
    current_.hits += counts.hit_samples;
    node_.refill(setting_.job, now);
}

void JobRun::report_losses(const Batch& batch) {
    if (setting_.losses == nullptr) {
        return;
    }
    local::Losses losses{epoch_, {batch.samples.begin(), batch.samples.end()}, {}};
    for (const SampleIndex sample : batch.samples) {
        losses.losses.push_back(setting_.losses->visit(sample));
    }
    node_.engine().samplers().on_losses(stream(), losses);
}

// Computing a batch starts when its data has arrived and the batch before it is finished.
void JobRun::compute_next() {
    if (computed_at_ || outstanding_.empty() || !outstanding_.front().ready) {
        return;
    }
    const Batch& batch = outstanding_.front();
    const TimePoint begin = std::max(*batch.ready, idle_since_);
    current_.waited += begin - idle_since_;
    const double seconds = static_cast<double>(batch.samples.size()) /
                           (setting_.scenario->samples_per_second * spec().speed);
    computed_at_ = begin + Duration{static_cast<Duration::rep>(seconds * 1e9)};
}

std::uint64_t JobRun::outstanding_samples() const {
    std::uint64_t samples = 0;
    for (const Batch& batch : outstanding_) {
        samples += batch.samples.size();
    }
    return samples;
}

JobFigures JobRun::figures() const {
    JobFigures figures = done_;
    if (in_epoch_ && current_.requested > 0) {
        figures.epochs.push_back(current_);
        figures.epochs.back().time = idle_since_ - epoch_began_;
    }
    return figures;
}

}  // namespace stoker::simulate
