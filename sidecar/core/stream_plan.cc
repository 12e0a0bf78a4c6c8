#include "sidecar/core/stream_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "common/base/check.h"

namespace stoker::sidecar {

Result<StreamPlan> StreamPlan::make(
    std::uint64_t epoch,
    std::vector<SampleIndex> samples,
    std::uint64_t start,
    std::uint64_t sample_count,
    std::uint64_t ahead) {
    if (samples.size() >= std::numeric_limits<std::uint32_t>::max()) {
        return fail(ErrorCode::kInvalidArgument, "the plan has 2^32 positions or more");
    }
    if (ahead > samples.size() || start > samples.size() - ahead) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "plan starts at {} but has {} positions, {} of them of the next epoch",
                start,
                samples.size(),
                ahead));
    }
    const auto foreign =
        std::ranges::find_if(samples, [&](SampleIndex id) { return id >= sample_count; });
    if (foreign != samples.end()) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("plan has sample id {}, but the dataset has {}", *foreign, sample_count));
    }
    StreamPlan plan;
    plan.epoch_ = epoch;
    plan.samples_ = std::move(samples);
    plan.length_ = static_cast<std::uint32_t>(plan.samples_.size() - ahead);
    plan.each_once_ = plan.samples_.size() == sample_count && plan.index_each_once();
    if (!plan.each_once_) {
        plan.index();
    }
    plan.read_.assign(plan.samples_.size(), false);
    std::fill_n(plan.read_.begin(), static_cast<std::ptrdiff_t>(start), true);
    plan.frontier_ = static_cast<std::uint32_t>(start);
    return plan;
}

// Builds the index by sample. False: a sample occurs more than once.
bool StreamPlan::index_each_once() {
    constexpr auto kNone = std::numeric_limits<std::uint32_t>::max();
    by_sample_.assign(samples_.size(), kNone);
    for (std::uint32_t position = 0; position < horizon(); ++position) {
        if (std::exchange(by_sample_[samples_[position]], position) != kNone) {
            return false;
        }
    }
    return true;
}

void StreamPlan::index() {
    by_sample_.clear();
    index_from(0);
}

// Adds the positions from `position` on to the index.
void StreamPlan::index_from(std::uint32_t position) {
    const auto old = static_cast<std::ptrdiff_t>(by_sample_.size());
    by_sample_.resize(by_sample_.size() + samples_.size() - position);
    std::iota(by_sample_.begin() + old, by_sample_.end(), position);
    const auto before = [this](std::uint32_t a, std::uint32_t b) {
        return std::pair{samples_[a], a} < std::pair{samples_[b], b};
    };
    std::sort(by_sample_.begin() + old, by_sample_.end(), before);
    std::inplace_merge(by_sample_.begin(), by_sample_.begin() + old, by_sample_.end(), before);
}

std::vector<SampleIndex> StreamPlan::extend(const PlanTail& tail) {
    STOKER_CHECK(length_ == samples_.size() && tail.from <= length_, "tail begins after its plan");
    std::vector<SampleIndex> cut;
    for (std::uint32_t position = tail.from; position < horizon(); ++position) {
        if (!read_[position]) {
            cut.push_back(samples_[position]);
        }
    }
    std::erase_if(by_sample_, [this, &tail](std::uint32_t position) {
        return position >= tail.from || read_[position];
    });
    samples_.resize(tail.from);
    samples_.insert(samples_.end(), tail.samples.begin(), tail.samples.end());
    read_.resize(tail.from);
    read_.resize(samples_.size());
    length_ = horizon();
    frontier_ = std::min(frontier_, tail.from);
    if (std::exchange(each_once_, false)) {
        index();
    } else {
        index_from(tail.from);
    }
    return cut;
}

std::optional<std::uint32_t> StreamPlan::next_position(SampleIndex sample) const {
    if (each_once_) {
        const std::uint32_t position = by_sample_[sample];
        return read_[position] ? std::nullopt : std::optional{position};
    }
    if (frontier_ < length_ && samples_[frontier_] == sample) {
        return frontier_;  // the plan was read in order so far, so the position is not checked
    }
    const auto of_sample = std::ranges::equal_range(
        by_sample_, sample, {}, [this](std::uint32_t position) { return samples_[position]; });
    // Occurrences are read in order: read ones come first, next epoch's ones last.
    const auto unread = std::ranges::partition_point(
        of_sample, [this](std::uint32_t position) { return read_[position]; });
    if (unread == of_sample.end()) {
        return std::nullopt;
    }
    return *unread;
}

bool StreamPlan::read(SampleIndex sample) {
    const auto position = next_position(sample);
    if (!position || *position >= length()) {
        return false;
    }
    read_[*position] = true;
    while (frontier_ < length() && read_[frontier_]) {
        ++frontier_;
    }
    return true;
}

std::uint32_t StreamPlan::foresaw(const StreamPlan& next) const {
    const auto ahead = samples_.begin() + length();
    const auto begin = next.samples_.begin();
    const auto same = std::mismatch(ahead, samples_.end(), begin, begin + next.length()).first;
    return static_cast<std::uint32_t>(same - ahead);
}

}  // namespace stoker::sidecar
