#include "sidecar/service/replay_log.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <variant>

#include <fcntl.h>

#include "sidecar/service/client_memfds.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kIdsPerFrame = 100'000;  // keeps a frame below the sessions' limit

// Approximate bytes of memory that an unanswered request holds.
std::size_t held_bytes(const local::Message& message) {
    const auto* fetch = std::get_if<local::Fetch>(&message);
    return sizeof(message) + (fetch == nullptr ? 0 : fetch->samples.size() * sizeof(std::uint64_t));
}

UniqueFd duplicate(const UniqueFd& fd) {
    return UniqueFd{fd.valid() ? ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0) : -1};
}

}  // namespace

void ReplayLog::on_request(const Frame& frame) {
    const local::Message& message = frame.message;
    if (std::holds_alternative<local::Plan>(message) ||
        std::holds_alternative<local::Begin>(message)) {
        said_ = Said{{frame.request_id, message, duplicate(frame.fd)}};
        consumed_ = {};
    } else if (const auto* consumed = std::get_if<local::Consumed>(&message)) {
        note_consumed(*consumed);
    } else if (
        std::holds_alternative<local::Fetch>(message) ||
        std::holds_alternative<local::Draw>(message) ||
        std::holds_alternative<local::AskEpoch>(message) ||
        std::holds_alternative<local::AskSnapshot>(message)) {
        forget_pending(frame.request_id);
        pending_.emplace(frame.request_id, message);
        pending_bytes_ += held_bytes(message);
    }
}

// Reads beyond the plan's positions and lookahead are repeated reads, which no leader needs.
void ReplayLog::note_consumed(const local::Consumed& consumed) {
    if (plan() == nullptr || consumed.epoch != plan()->epoch) {
        return;
    }
    const std::uint64_t most = plan()->sample_count + local::kAheadSamplesMax;
    for (const std::uint64_t sample : consumed.samples) {
        if (sample < sample_count_ && consumed_.size() < most) {
            consumed_.push_back(sample);
        }
    }
}

void ReplayLog::on_answer(const Frame& frame) {
    forget_pending(frame.request_id);
    if (said_ && frame.request_id == said_->frame.request_id) {
        said_->answered = true;
    }
    if (const auto* drawn = std::get_if<local::Drawn>(&frame.message)) {
        note_drawn(*drawn);
    }
}

void ReplayLog::forget_pending(std::uint64_t request_id) {
    if (const auto asked = pending_.extract(request_id)) {
        pending_bytes_ -= held_bytes(asked.mapped());
    }
}

void ReplayLog::note_drawn(const local::Drawn& drawn) {
    if (begin() == nullptr || drawn.epoch != begin()->epoch) {
        return;
    }
    said_->draws += drawn.served.size();
    said_->drawn.resize(sample_count_ / 8 + 1);
    for (const std::uint64_t sample : drawn.served) {
        if (sample < sample_count_) {
            said_->drawn[sample / 8] |= std::byte{1} << (sample % 8);
        }
    }
}

// The client's begin, with later draws counted as served. If its memfd cannot be read, the leader
// refuses the begin.
Frame ReplayLog::begin_again() const {
    local::Begin again = *begin();
    const std::uint64_t request_id = said_->frame.request_id;
    auto state = read_begin_state(said_->frame.fd, again, sample_count_);
    if (!state) {
        return {request_id, again, duplicate(said_->frame.fd)};
    }
    again.skip += said_->draws;
    state->served.resize(std::max(state->served.size(), said_->drawn.size()));
    for (std::size_t i = 0; i < said_->drawn.size(); ++i) {
        state->served[i] |= said_->drawn[i];
    }
    again.served_bytes = state->served.size();
    auto memfd = seal_begin_state(*state);
    if (!memfd) {
        again.served_bytes = again.snapshot_bytes = 0;
        return {request_id, again};
    }
    return {request_id, again, *std::move(memfd)};
}

// Moves the plan's start past the contiguous reads; returns the reads beyond them. If the memfd
// does not match the plan, the leader refuses it.
std::vector<std::uint64_t> ReplayLog::skip_read(local::Plan& plan) const {
    std::vector<std::uint32_t> counts(consumed_.empty() ? 0 : sample_count_);
    for (const std::uint64_t sample : consumed_) {
        ++counts[sample];
    }
    // The plan's ids after the epoch's end were not read in this epoch.
    const auto read = [&](std::span<const std::uint64_t> ids) {
        for (const std::uint64_t id : ids) {
            if (id >= counts.size() || counts[id] == 0) {
                return false;
            }
            --counts[id];
            ++plan.start;
        }
        return true;
    };
    if (!counts.empty()) {
        [[maybe_unused]] const auto visited =
            visit_ids(said_->frame.fd, plan.start, plan.sample_count, read);
    }
    std::vector<std::uint64_t> beyond;
    std::ranges::copy_if(consumed_, std::back_inserter(beyond), [&counts](std::uint64_t sample) {
        return counts[sample] > 0 && counts[sample]-- > 0;
    });
    return beyond;
}

std::deque<Frame> ReplayLog::replay(bool ahead) const {
    std::deque<Frame> frames;
    if (plan() != nullptr) {
        local::Plan again = *plan();
        const auto beyond = skip_read(again);
        UniqueFd memfd = duplicate(said_->frame.fd);
        frames.push_back(
            {said_->frame.request_id,
             again,
             ahead ? std::move(memfd) : without_ahead(std::move(memfd), again, sample_count_)});
        for (std::span left{beyond}; !left.empty();) {
            const auto piece = left.first(std::min(kIdsPerFrame, left.size()));
            frames.push_back({0, local::Consumed{again.epoch, {piece.begin(), piece.end()}}});
            left = left.subspan(piece.size());
        }
    } else if (begin() != nullptr) {
        frames.push_back(begin_again());
    }
    for (const auto& [id, message] : pending_) {
        frames.push_back({id, message});
    }
    return frames;
}

std::vector<Frame> ReplayLog::take_pending() {
    std::vector<Frame> frames;
    if (plan() != nullptr && !said_->answered) {
        frames.push_back({said_->frame.request_id, *plan(), duplicate(said_->frame.fd)});
    }
    pending_bytes_ = 0;
    for (auto& [id, message] : std::exchange(pending_, {})) {
        frames.push_back({id, std::move(message)});
    }
    return frames;
}

bool ReplayLog::is_repeated(std::uint64_t request_id) const {
    return said_ && said_->answered && request_id == said_->frame.request_id;
}

}  // namespace stoker::sidecar
