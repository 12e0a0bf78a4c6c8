#include "sidecar/engine/rank_plan.h"

#include <algorithm>
#include <utility>

namespace stoker::sidecar {

namespace {

constexpr std::size_t kReadMax =
    1024;  // draws already read that a plan may keep, besides as many as are unread

}  // namespace

RankPlan::RankPlan(std::uint32_t rank, std::size_t horizon, std::vector<bool> served)
    : rank_(rank),
      horizon_(horizon),
      served_(std::move(served)) {}

std::vector<Draw> RankPlan::draw(Sampler& sampler, std::size_t count) {
    std::vector<Draw> draws;
    while (draws.size() < count && !has_ended_) {
        const std::size_t before = draws.size();
        sampler.draw(rank_, count - before, draws);
        has_ended_ = draws.size() < count;
        if (!served_.empty()) {
            const auto first = draws.begin() + static_cast<std::ptrdiff_t>(before);
            const auto again = std::ranges::remove_if(
                first, draws.end(), [this](const Draw& draw) { return served_[draw.served]; });
            draws.erase(again.begin(), again.end());
        }
    }
    std::ranges::for_each(draws, [this](const Draw& draw) { note(draw); });
    const std::size_t ahead = foreseen_.size() - foreseen_drawn_;
    is_stale_ |= !has_ended_ && ahead < foreseen_.size() / 2;
    return draws;
}

void RankPlan::note(const Draw& draw) {
    const bool all_planned = planned_ == drawn_.size();
    drawn_.push_back(draw.served);
    ++unread_counts_[draw.served];
    ++unread_;
    const bool was_foreseen =
        foreseen_drawn_ < foreseen_.size() && foreseen_[foreseen_drawn_] == draw.served;
    foreseen_drawn_ += was_foreseen ? 1 : 0;
    planned_ += all_planned && was_foreseen ? 1 : 0;
    is_stale_ |= !was_foreseen;
}

bool RankPlan::on_read(SampleIndex sample) {
    std::uint32_t* const count = unread_counts_.find(sample);
    if (count == nullptr) {
        return false;
    }
    must_be_whole_ |= planned_ < drawn_.size();
    --unread_;
    if (--*count == 0) {
        unread_counts_.erase(sample);
    }
    return true;
}

std::optional<PlanTail> RankPlan::renew(const Sampler& sampler, std::uint32_t in_force) {
    if (!std::exchange(is_stale_, false)) {
        return std::nullopt;
    }
    if (std::exchange(must_be_whole_, false) || in_force != size_ ||
        drawn_.size() > 2 * unread_ + kReadMax) {
        forget_read();
        planned_ = 0;
    }
    foreseen_.clear();
    foreseen_drawn_ = 0;
    if (!has_ended_) {
        sampler.foresee(rank_, horizon_, foreseen_);
    }
    if (!served_.empty()) {
        std::erase_if(foreseen_, [this](SampleIndex sample) { return served_[sample]; });
    }
    PlanTail tail{planned_, {drawn_.begin() + planned_, drawn_.end()}};
    tail.samples.insert(tail.samples.end(), foreseen_.begin(), foreseen_.end());
    planned_ = static_cast<std::uint32_t>(drawn_.size());
    size_ = tail.from + static_cast<std::uint32_t>(tail.samples.size());
    return tail;
}

// Drops read draws. If one sample was drawn twice, its later draw counts as unread.
void RankPlan::forget_read() {
    std::vector<SampleIndex> unread;
    for (auto sample = drawn_.rbegin(); sample != drawn_.rend(); ++sample) {
        std::uint32_t* const count = unread_counts_.find(*sample);
        if (count != nullptr && *count > 0) {
            --*count;
            unread.push_back(*sample);
        }
    }
    for (const SampleIndex sample : unread) {
        ++unread_counts_[sample];
    }
    std::ranges::reverse(unread);
    drawn_ = std::move(unread);
}

}  // namespace stoker::sidecar
