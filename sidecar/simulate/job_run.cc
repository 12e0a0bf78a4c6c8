#include "sidecar/simulate/job_run.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::simulate {

JobRun::JobRun(Setting setting, Node& node)
    : setting_(std::move(setting)),
      node_(node),
      seen_(setting_.samples),
      idle_since_(setting_.start) {
    done_.contract = setting_.contract;
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
    Batch batch = std::move(outstanding_.front());
    outstanding_.pop_front();
    idle_since_ = *computed_at_;
    computed_at_.reset();
    node_.consume(setting_.job, batch, current_, now);
    report_losses(batch);
    spare_.push_back(std::move(batch));
    compute_next();
    room_ = true;
}

void JobRun::go_on(TimePoint now) {
    if (is_finished() || !room_ || idle_since_ > now) {
        return;
    }
    room_ = false;
    if (in_epoch_ && drained_ && outstanding_.empty()) {
        end_epoch(now);
        if (is_finished()) {
            return;
        }
    }
    if (!in_epoch_) {
        begin_epoch(now);
    }
    while (!drained_ && outstanding_.size() <= setting_.ahead && ask(now)) {
    }
    if (drained_ && outstanding_.empty()) {
        room_ = true;  // an empty tail: the epoch ends at once
    }
}

void JobRun::begin_epoch(TimePoint now) {
    in_epoch_ = true;
    drained_ = false;
    epoch_began_ = now;
    current_ = {};
    current_.epoch = epoch_;
    seen_.assign(seen_.size(), false);
    if (setting_.losses != nullptr) {
        setting_.losses->begin_epoch(epoch_);
    }
    if (!done_.epochs.empty() && done_.epochs.back().time > Duration::zero()) {
        const EpochFigures& last = done_.epochs.back();
        setting_.sampler->on_waiting(
            static_cast<double>(last.waited.count()) / static_cast<double>(last.time.count()));
    }
    setting_.sampler->begin_epoch(0, epoch_, 0);
    if (setting_.feed != nullptr) {
        setting_.feed->on_epoch(setting_.job, epoch_);
    }
    node_.begin_epoch({setting_.job, epoch_, setting_.reads_all}, now);
}

void JobRun::end_epoch(TimePoint now) {
    in_epoch_ = false;
    current_.complete = true;
    current_.time = now - epoch_began_;
    done_.epochs.push_back(current_);
    ++epoch_;
}

// False: there was nothing more to ask for.
bool JobRun::ask(TimePoint now) {
    foresee(now);
    tell_plan();
    Batch batch;
    if (!spare_.empty()) {
        batch = std::move(spare_.back());
        spare_.pop_back();
    }
    batch.draws.clear();
    batch.ready.reset();
    setting_.sampler->draw(0, setting_.batch, batch.draws);
    drained_ = batch.draws.size() < setting_.batch;
    planned_ -= std::min(planned_, batch.draws.size());
    if (setting_.feed != nullptr) {
        setting_.feed->on_batch(setting_.job);
    }
    if (batch.draws.empty()) {
        return false;
    }
    batch.number = next_batch_++;
    note_served(batch);
    outstanding_.push_back(std::move(batch));
    node_.request(setting_.job, outstanding_.back(), current_, now);
    return true;
}

void JobRun::foresee(TimePoint now) {
    if (setting_.foresight > 0) {
        foreseen_.clear();
        setting_.sampler->foresee(0, setting_.foresight, foreseen_);
        node_.foresee(setting_.job, foreseen_, current_, now);
    }
}

// As the sidecar does: anew when half of it has been drawn.
void JobRun::tell_plan() {
    if (setting_.plan == 0 || planned_ > setting_.plan / 2) {
        return;
    }
    foreseen_.clear();
    setting_.sampler->foresee(0, setting_.plan, foreseen_);
    node_.expect(setting_.job, std::span{foreseen_}.subspan(planned_));
    planned_ = foreseen_.size();
}

void JobRun::note_served(const Batch& batch) {
    current_.requested += batch.draws.size();
    for (const Draw& draw : batch.draws) {
        if (seen_[draw.served]) {
            ++current_.repeated;
        } else {
            seen_[draw.served] = true;
            ++current_.distinct;
        }
        current_.substituted += draw.kind == Draw::Kind::kSubstituted ? 1 : 0;
    }
}

void JobRun::report_losses(const Batch& batch) {
    if (setting_.losses == nullptr) {
        return;
    }
    served_.clear();
    seen_losses_.clear();
    for (const Draw& draw : batch.draws) {
        served_.push_back(draw.served);
        seen_losses_.push_back(setting_.losses->visit(draw.served));
    }
    setting_.sampler->on_losses(0, served_, seen_losses_);
    if (setting_.feed != nullptr) {
        setting_.feed->on_losses(setting_.job, served_);
    }
}

void JobRun::on_ready(std::uint64_t number, TimePoint at) {
    const auto found = std::ranges::find(outstanding_, number, &Batch::number);
    STOKER_CHECK(found != outstanding_.end(), "only what was asked for can become ready");
    found->ready = at;
    compute_next();
}

// The compute of a batch begins when its data is here and the batch before it is done.
void JobRun::compute_next() {
    if (computed_at_ || outstanding_.empty() || !outstanding_.front().ready) {
        return;
    }
    const Batch& batch = outstanding_.front();
    const TimePoint begin = std::max(*batch.ready, idle_since_);
    current_.waited += begin - idle_since_;
    const double seconds = static_cast<double>(batch.draws.size()) / setting_.samples_per_second;
    computed_at_ = begin + Duration{static_cast<Duration::rep>(seconds * 1e9)};
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
