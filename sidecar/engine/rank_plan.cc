#include "sidecar/engine/rank_plan.h"

#include <algorithm>
#include <utility>

namespace stoker::sidecar {

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
    drawn_.push_back(draw.served);
    ++unread_counts_[draw.served];
    ++unread_;
    const bool was_foreseen =
        foreseen_drawn_ < foreseen_.size() && foreseen_[foreseen_drawn_] == draw.served;
    foreseen_drawn_ += was_foreseen ? 1 : 0;
    is_stale_ |= !was_foreseen;
}

bool RankPlan::on_read(SampleIndex sample) {
    const auto count = unread_counts_.find(sample);
    if (count == unread_counts_.end()) {
        return false;
    }
    --unread_;
    if (--count->second == 0) {
        unread_counts_.erase(count);
    }
    return true;
}

std::optional<std::vector<SampleIndex>> RankPlan::renew(const Sampler& sampler) {
    if (!std::exchange(is_stale_, false)) {
        return std::nullopt;
    }
    auto left = unread_counts_;
    std::vector<SampleIndex> plan;
    // Samples are read in order; if a sample was drawn twice, the later draw is the unread one.
    for (auto sample = drawn_.rbegin(); sample != drawn_.rend(); ++sample) {
        if (const auto count = left.find(*sample); count != left.end() && count->second > 0) {
            --count->second;
            plan.push_back(*sample);
        }
    }
    std::ranges::reverse(plan);
    drawn_ = plan;
    foreseen_.clear();
    foreseen_drawn_ = 0;
    if (!has_ended_) {
        sampler.foresee(rank_, horizon_, foreseen_);
    }
    if (!served_.empty()) {
        std::erase_if(foreseen_, [this](SampleIndex sample) { return served_[sample]; });
    }
    plan.insert(plan.end(), foreseen_.begin(), foreseen_.end());
    return plan;
}

}  // namespace stoker::sidecar
