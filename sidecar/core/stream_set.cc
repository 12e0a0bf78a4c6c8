#include "sidecar/core/stream_set.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Moves the cursor to the next unread wanted position. False: `steps` ran out first.
bool advance(Stream& stream, const std::function<bool(SampleIndex)>& wants, std::uint32_t& steps) {
    const StreamPlan& plan = *stream.plan;
    stream.cursor = std::max(stream.cursor, plan.frontier());
    while (stream.cursor < plan.horizon()) {
        if (!plan.is_read(stream.cursor) && wants(plan.sample_at(stream.cursor))) {
            break;
        }
        if (steps == 0) {
            return false;
        }
        --steps;
        ++stream.cursor;
        stream.high_water = std::max(stream.high_water, stream.cursor);
    }
    return true;
}

bool is_near_to(const Stream& stream, SampleIndex sample) {
    const auto position = stream.plan ? stream.plan->next_position(sample) : std::nullopt;
    return position && *position < stream.high_water;
}

std::uint32_t end_of(const PlanTail& tail) {
    return tail.from + static_cast<std::uint32_t>(tail.samples.size());
}

std::uint32_t ahead(const Stream& stream) {
    const std::uint32_t frontier = stream.plan->frontier();
    return stream.high_water > frontier ? stream.high_water - frontier : 0;
}

}  // namespace

void StreamSet::join(StreamId stream, Party party) {
    Stream& joined = streams_[stream];
    if (joined.connections++ == 0) {
        joined.party = party;
    }
}

std::optional<StreamPlan> StreamSet::leave(StreamId stream) {
    const auto found = streams_.find(stream);
    STOKER_CHECK(found != streams_.end(), "leave() for a stream that has no connection");
    if (--found->second.connections > 0) {
        return std::nullopt;
    }
    std::optional<StreamPlan> plan;
    plan.swap(found->second.plan);
    streams_.erase(found);
    return plan;
}

std::optional<StreamPlan> StreamSet::replace_plan(StreamId id, StreamPlan plan) {
    Stream& stream = streams_.at(id);
    const bool goes_on = stream.by_chunk && stream.plan && stream.plan->epoch() == plan.epoch();
    const std::uint32_t ahead_before = goes_on ? ahead(stream) : 0;
    auto old = std::exchange(stream.plan, std::move(plan));
    const std::uint32_t frontier = stream.plan->frontier();
    const std::uint32_t foreseen = old ? old->foresaw(*stream.plan) : 0;
    const auto carried = [&](std::uint32_t position) {
        const std::uint32_t passed = old && position > old->length() ? position - old->length() : 0;
        return std::max(frontier, std::min(passed, foreseen));
    };
    stream.cursor = frontier;
    stream.high_water = std::max(
        carried(stream.high_water), std::min(frontier + ahead_before, stream.plan->horizon()));
    stream.readahead = carried(stream.readahead);
    return old;
}

std::vector<SampleIndex> StreamSet::extend_plan(StreamId id, const PlanTail& tail) {
    Stream& stream = streams_.at(id);
    stream.cursor = std::min(stream.cursor, tail.from);
    stream.high_water = std::min(stream.high_water, stream.by_chunk ? end_of(tail) : tail.from);
    stream.readahead = std::min(stream.readahead, tail.from);
    return stream.plan->extend(tail);
}

void StreamSet::set_by_chunk(StreamId stream, bool by_chunk) {
    if (const auto found = streams_.find(stream); found != streams_.end()) {
        found->second.by_chunk = by_chunk;
    }
}

std::optional<StreamId> StreamSet::chunk_reader(SampleIndex sample) const {
    const auto found = std::ranges::find_if(streams_, [sample](const auto& entry) {
        const Stream& stream = entry.second;
        return stream.by_chunk && stream.party == kOwnParty && stream.plan &&
               stream.plan->next_position(sample);
    });
    return found == streams_.end() ? std::nullopt : std::optional{found->first};
}

std::vector<SampleIndex> StreamSet::take_chunk(
    StreamId id, std::span<const SampleIndex> chunk, std::uint64_t reach) {
    Stream& stream = streams_.at(id);
    std::vector<SampleIndex> taken;
    for (const SampleIndex sample : chunk) {
        const auto position = stream.plan->next_position(sample);
        if (position && *position - stream.plan->frontier() < reach) {
            stream.high_water = std::max(stream.high_water, *position + 1);
            taken.push_back(sample);
        }
    }
    return taken;
}

Stream* StreamSet::with_plan(StreamId stream) {
    const auto found = streams_.find(stream);
    return found == streams_.end() || !found->second.plan ? nullptr : &found->second;
}

std::uint32_t StreamSet::plan_size(StreamId stream, std::uint64_t epoch) const {
    const auto found = streams_.find(stream);
    if (found == streams_.end() || !found->second.plan) {
        return 0;
    }
    const StreamPlan& plan = *found->second.plan;
    return plan.epoch() == epoch && plan.length() == plan.horizon() ? plan.length() : 0;
}

bool StreamSet::any_own_plan(const std::function<bool(StreamId)>& chosen) const {
    return std::ranges::any_of(streams_, [&chosen](const auto& entry) {
        return entry.second.party == kOwnParty && entry.second.plan && chosen(entry.first);
    });
}

void StreamSet::rewind(SampleIndex sample) {
    for (auto& [id, stream] : streams_) {
        if (!stream.plan) {
            continue;
        }
        if (const auto position = stream.plan->next_position(sample)) {
            stream.cursor = std::min(stream.cursor, *position);
        }
    }
}

void StreamSet::rewind_all() {
    for (auto& [id, stream] : streams_) {
        stream.cursor = 0;
    }
}

std::optional<std::uint32_t> StreamSet::distance(SampleIndex sample) const {
    std::optional<std::uint32_t> nearest;
    for (const auto& [id, stream] : streams_) {
        if (!stream.plan) {
            continue;
        }
        if (const auto position = stream.plan->next_position(sample)) {
            const std::uint32_t distance = *position - stream.plan->frontier();
            nearest = std::min(nearest.value_or(distance), distance);
        }
    }
    return nearest;
}

bool StreamSet::is_near(SampleIndex sample, Party charged, Party other) const {
    return std::ranges::any_of(streams_, [sample, charged, other](const auto& entry) {
        const Stream& stream = entry.second;
        const bool counts =
            stream.party == kOwnParty || stream.party == charged || stream.party == other;
        return counts && is_near_to(stream, sample);
    });
}

bool StreamSet::is_near_any(SampleIndex sample) const {
    return std::ranges::any_of(
        streams_, [sample](const auto& entry) { return is_near_to(entry.second, sample); });
}

bool StreamSet::is_near_for(Party party, SampleIndex sample) const {
    return std::ranges::any_of(streams_, [party, sample](const auto& entry) {
        return entry.second.party == party && is_near_to(entry.second, sample);
    });
}

bool StreamSet::is_due(SampleIndex sample, std::uint32_t soon) const {
    return std::ranges::any_of(streams_, [sample, soon](const auto& entry) {
        const auto& plan = entry.second.plan;
        const auto position = plan ? plan->next_position(sample) : std::nullopt;
        return position && (*position < plan->length() || *position - plan->frontier() < soon);
    });
}

std::optional<Candidate> StreamSet::nearest(
    const std::function<bool(SampleIndex)>& wants, std::uint32_t& steps, Party party) {
    std::optional<Candidate> best;
    for (auto& [id, stream] : streams_) {
        if (!stream.plan || stream.holds > 0 || stream.party != party) {
            continue;
        }
        if (!advance(stream, wants, steps)) {
            return std::nullopt;
        }
        if (stream.cursor == stream.plan->horizon()) {
            continue;
        }
        const std::uint32_t distance = stream.cursor - stream.plan->frontier();
        if (!best || distance < best->distance) {
            best = Candidate{stream.plan->sample_at(stream.cursor), distance, id};
        }
    }
    return best;
}

void StreamSet::take(const Candidate& candidate) {
    Stream& stream = streams_.at(candidate.stream);
    stream.high_water = std::max(stream.high_water, stream.cursor + 1);
}

std::optional<SampleIndex> StreamSet::farthest(
    const std::function<bool(SampleIndex)>& may_go,
    std::uint32_t& steps,
    const std::function<bool(Party)>& may_lose) {
    std::vector<Stream*> by_lead;
    for (auto& [id, stream] : streams_) {
        if (stream.plan && (!may_lose || may_lose(stream.party))) {
            by_lead.push_back(&stream);
        }
    }
    std::ranges::stable_sort(by_lead, std::greater{}, [](const Stream* s) { return ahead(*s); });
    for (Stream* stream : by_lead) {
        const StreamPlan& plan = *stream->plan;
        while (stream->high_water > plan.frontier() && steps > 0) {
            --steps;
            const std::uint32_t position = --stream->high_water;
            stream->cursor = std::min(stream->cursor, position);
            const SampleIndex sample = plan.sample_at(position);
            if (plan.is_read(position) || !may_go(sample)) {
                continue;
            }
            // A sample that another reader needs much sooner is not a candidate.
            if (distance(sample).value_or(0) >= (position - plan.frontier()) / 2) {
                return sample;
            }
        }
    }
    return std::nullopt;
}

void StreamSet::read_ahead(
    std::uint32_t distance, const std::function<void(SampleIndex)>& announce) {
    for (auto& [id, stream] : streams_) {
        if (!stream.plan) {
            continue;
        }
        const StreamPlan& plan = *stream.plan;
        const auto end =
            std::min<std::uint64_t>(plan.horizon(), std::uint64_t{plan.frontier()} + distance);
        stream.readahead = std::max(stream.readahead, plan.frontier());
        for (; stream.readahead < end; ++stream.readahead) {
            if (!plan.is_read(stream.readahead)) {
                announce(plan.sample_at(stream.readahead));
            }
        }
    }
}

}  // namespace stoker::sidecar
