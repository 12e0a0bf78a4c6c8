#include "sidecar/service/replay_log.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <unistd.h>

#include "sidecar/service/sealed_plan.h"
#include "sidecar/service/sealed_state.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kIdsPerRead = std::size_t{64} << 10U;
constexpr std::size_t kIdsPerFrame = 100'000;  // a frame below the sessions' limit

UniqueFd duplicate(const UniqueFd& fd) {
    return UniqueFd{fd.valid() ? ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0) : -1};
}

}  // namespace

std::optional<Replay::Recorded> Replay::next() {
    if (!first_.empty()) {
        Recorded recorded = std::move(first_.front());
        first_.pop_front();
        return recorded;
    }
    if (said_ < beyond_.size()) {
        const auto begin = beyond_.begin() + static_cast<std::ptrdiff_t>(said_);
        const auto count = std::min(kIdsPerFrame, beyond_.size() - said_);
        said_ += count;
        const local::Consumed consumed{epoch_, {begin, begin + static_cast<std::ptrdiff_t>(count)}};
        return Recorded{local::encode_frame(consumed, 0), {}};
    }
    if (last_.empty()) {
        return std::nullopt;
    }
    Recorded recorded = std::move(last_.front());
    last_.pop_front();
    return recorded;
}

void ReplayLog::on_request(const Frame& frame) {
    const auto message = local::decode_payload(frame.header.type, frame.payload);
    if (!message) {
        return;
    }
    if (const auto* plan = std::get_if<local::Plan>(&*message)) {
        plan_ = RecordedPlan{*plan, frame.header.request_id, duplicate(frame.fd)};
        begin_.reset();
        consumed_ = {};
    } else if (const auto* begin = std::get_if<local::Begin>(&*message)) {
        begin_ = RecordedBegin{*begin, frame.header.request_id, duplicate(frame.fd)};
        plan_.reset();
        consumed_ = {};
    } else if (const auto* consumed = std::get_if<local::Consumed>(&*message)) {
        note_consumed(*consumed);
    } else if (
        std::holds_alternative<local::Fetch>(*message) ||
        std::holds_alternative<local::Draw>(*message) ||
        std::holds_alternative<local::AskEpoch>(*message) ||
        std::holds_alternative<local::AskSnapshot>(*message)) {
        auto& asked = pending_[frame.header.request_id];
        pending_bytes_ -= asked.size();
        asked = join_frame(frame.header, frame.payload);
        pending_bytes_ += asked.size();
    }
}

// More reads than the plan has positions, and may have behind them, are repetitions, which no
// leader needs to know.
void ReplayLog::note_consumed(const local::Consumed& consumed) {
    if (!plan_ || consumed.epoch != plan_->plan.epoch) {
        return;
    }
    const std::uint64_t most = plan_->plan.sample_count + local::kAheadSamplesMax;
    for (const std::uint64_t sample : consumed.samples) {
        if (sample < sample_count_ && consumed_.size() < most) {
            consumed_.push_back(sample);
        }
    }
}

void ReplayLog::on_answer(const Frame& frame) {
    const std::uint64_t request_id = frame.header.request_id;
    if (const auto asked = pending_.extract(request_id)) {
        pending_bytes_ -= asked.mapped().size();
    }
    if (plan_ && request_id == plan_->request_id) {
        plan_->answered = true;
    }
    if (begin_ && request_id == begin_->request_id) {
        begin_->answered = true;
    }
    if (begin_ && frame.header.type == local::FrameType::kDrawn) {
        const auto message = local::decode_payload(frame.header.type, frame.payload);
        if (message) {
            note_drawn(std::get<local::Drawn>(*message));
        }
    }
}

void ReplayLog::note_drawn(const local::Drawn& drawn) {
    if (drawn.epoch != begin_->begin.epoch) {
        return;
    }
    begin_->draws += drawn.served.size();
    begin_->drawn.resize(sample_count_ / 8 + 1);
    for (const std::uint64_t sample : drawn.served) {
        if (sample < sample_count_) {
            begin_->drawn[sample / 8] |= std::byte{1} << (sample % 8);
        }
    }
}

// The begin with what was drawn since counted as served. One whose memfd cannot be read is the
// leader's to refuse.
Replay::Recorded ReplayLog::begin_again() const {
    local::Begin begin = begin_->begin;
    auto state = read_begin_state(begin_->memfd, begin, sample_count_);
    if (!state) {
        return {local::encode_frame(begin, begin_->request_id), duplicate(begin_->memfd)};
    }
    begin.skip += begin_->draws;
    state->served.resize(std::max(state->served.size(), begin_->drawn.size()));
    for (std::size_t i = 0; i < begin_->drawn.size(); ++i) {
        state->served[i] |= begin_->drawn[i];
    }
    begin.served_bytes = state->served.size();
    auto memfd = seal_begin_state(*state);
    if (!memfd) {
        begin.served_bytes = begin.snapshot_bytes = 0;
        return {local::encode_frame(begin, begin_->request_id), {}};
    }
    return {local::encode_frame(begin, begin_->request_id), *std::move(memfd)};
}

// Moves the plan's start behind what was read without a gap; gives what was read beyond it. A memfd
// that does not hold what the plan says is the leader's to refuse.
std::vector<std::uint64_t> ReplayLog::skip_read(local::Plan& plan) const {
    std::vector<std::uint32_t> counts(consumed_.empty() ? 0 : sample_count_);
    for (const std::uint64_t sample : consumed_) {
        ++counts[sample];
    }
    std::vector<std::uint64_t> ids(kIdsPerRead);
    for (bool gap = counts.empty(); !gap && plan.start < plan.sample_count;) {
        // What lies behind the epoch was not read in it.
        const auto wanted = std::min<std::uint64_t>(ids.size(), plan.sample_count - plan.start);
        const ssize_t bytes = ::pread(
            plan_->memfd.get(),
            ids.data(),
            wanted * sizeof(std::uint64_t),
            static_cast<off_t>(plan.start * sizeof(std::uint64_t)));
        if (bytes < static_cast<ssize_t>(sizeof(std::uint64_t))) {
            break;
        }
        const auto count = static_cast<std::size_t>(bytes) / sizeof(std::uint64_t);
        for (std::size_t i = 0; i < count && !gap; ++i) {
            gap = ids[i] >= counts.size() || counts[ids[i]] == 0;
            if (!gap) {
                --counts[ids[i]];
                ++plan.start;
            }
        }
    }
    std::vector<std::uint64_t> beyond;
    std::ranges::copy_if(consumed_, std::back_inserter(beyond), [&counts](std::uint64_t sample) {
        return counts[sample] > 0 && counts[sample]-- > 0;
    });
    return beyond;
}

Replay ReplayLog::replay(bool ahead) const {
    Replay replay;
    if (plan_) {
        local::Plan plan = plan_->plan;
        replay.epoch_ = plan.epoch;
        replay.beyond_ = skip_read(plan);
        UniqueFd memfd = duplicate(plan_->memfd);
        replay.first_.push_back(
            {local::encode_frame(plan, plan_->request_id),
             ahead ? std::move(memfd) : without_ahead(std::move(memfd), plan, sample_count_)});
    }
    if (begin_) {
        replay.first_.push_back(begin_again());
    }
    for (const auto& [id, bytes] : pending_) {
        replay.last_.push_back({bytes, {}});
    }
    return replay;
}

std::vector<Frame> ReplayLog::take_pending() {
    std::vector<Frame> frames;
    if (plan_ && !plan_->answered) {
        const auto bytes = local::encode_frame(plan_->plan, plan_->request_id);
        frames.push_back(split_frame(bytes, duplicate(plan_->memfd)));
    }
    pending_bytes_ = 0;
    for (const auto& [id, bytes] : std::exchange(pending_, {})) {
        frames.push_back(split_frame(bytes, {}));
    }
    return frames;
}

bool ReplayLog::is_repeated(std::uint64_t request_id) const {
    return (plan_ && plan_->answered && request_id == plan_->request_id) ||
           (begin_ && begin_->answered && request_id == begin_->request_id);
}

}  // namespace stoker::sidecar
