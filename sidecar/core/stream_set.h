#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/base/strong.h"
#include "sidecar/core/sample_table.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

// Identifies one rank's sampler together with its DataLoader workers: all of them send this number
// in their Hello.
using StreamId = Strong<std::uint64_t, struct StreamIdTag>;

struct Stream {
    Party party = kOwnParty;
    std::uint32_t connections = 0;
    std::uint32_t holds = 0;  // connections that currently forbid prefetching for it
    std::optional<StreamPlan> plan;
    std::uint32_t cursor = 0;      // prefetching has handled all positions before it
    std::uint32_t high_water = 0;  // furthest cursor so far; positions before it are near
    std::uint32_t readahead = 0;   // earlier residents were announced to the page cache
    bool by_chunk = false;         // reads groups of chunks, fetched together
};

// A sample that some stream needs and that is not on the node.
struct Candidate {
    SampleIndex sample = 0;
    std::uint32_t distance = 0;  // positions between the stream's reader and this need
    StreamId stream{};
};

// The streams of one dataset on one node, with their plans and prefetch positions. Ordered by id,
// so equal histories give equal choices. Not thread-safe.
class StreamSet {
public:
    void join(StreamId stream, Party party = kOwnParty);

    // Removes a connection; returns the stream's plan if this was the stream's last connection.
    std::optional<StreamPlan> leave(StreamId stream);

    // Returns the replaced plan. is_near() still holds for samples prefetched because the old plan
    // looked into the new plan's epoch. The stream must have joined.
    std::optional<StreamPlan> replace_plan(StreamId stream, StreamPlan plan);

    // Replaces the end of the stream's plan, which must exist; returns the unread samples of the
    // replaced part.
    std::vector<SampleIndex> extend_plan(StreamId stream, const PlanTail& tail);

    // Pauses prefetching for the stream until all holds are released. The stream must have joined.
    void hold(StreamId stream) { ++streams_.at(stream).holds; }

    void let_go(StreamId stream) { --streams_.at(stream).holds; }

    // Sets whether samples of one chunk are fetched for the stream together. If so, the stream's
    // plans continue one order, so is_near() still holds under the next plan for samples fetched
    // ahead.
    void set_by_chunk(StreamId stream, bool by_chunk);

    // The samples of `chunk` that the stream needs within `reach` positions of its reader. From now
    // on is_near() holds for them.
    std::vector<SampleIndex> take_chunk(
        StreamId stream, std::span<const SampleIndex> chunk, std::uint64_t reach);

    // The first stream of the own party that needs the sample and for which samples of one chunk are
    // fetched together.
    [[nodiscard]] std::optional<StreamId> chunk_reader(SampleIndex sample) const;

    // The stream, to read its plan. nullptr: the stream is unknown or has no plan.
    [[nodiscard]] Stream* with_plan(StreamId stream);

    // Number of positions of the stream's plan for this epoch; 0: it has no such plan, or the plan
    // looks into the next epoch and so cannot be extended.
    [[nodiscard]] std::uint32_t plan_size(StreamId stream, std::uint64_t epoch) const;

    // Whether a stream of the own party that `chosen` selects has a plan.
    [[nodiscard]] bool any_own_plan(const std::function<bool(StreamId)>& chosen) const;

    // Call after `sample` was dropped: every stream that still needs it considers it again.
    void rewind(SampleIndex sample);

    // Does what rewind() does, after many samples were dropped.
    void rewind_all();

    // Positions between a reader and its next need of `sample`, the minimum over all streams;
    // nullopt: no stream needs it.
    [[nodiscard]] std::optional<std::uint32_t> distance(SampleIndex sample) const;

    // Whether a stream needs the sample within the range that it has prefetched (before its
    // `high_water`), so that dropping the sample undoes a prefetch. Counts streams of the own
    // party, of the party that the sample is `charged` to, and of `other`, the party that asks for
    // room.
    [[nodiscard]] bool is_near(
        SampleIndex sample, Party charged = kOwnParty, Party other = kOwnParty) const;

    // Like is_near(), for the streams of all parties.
    [[nodiscard]] bool is_near_any(SampleIndex sample) const;

    // Like is_near(), for the streams of one party.
    [[nodiscard]] bool is_near_for(Party party, SampleIndex sample) const;

    [[nodiscard]] bool has_own_stream() const {
        return std::ranges::any_of(
            streams_, [](const auto& entry) { return entry.second.party == kOwnParty; });
    }

    // Whether a stream needs the sample in its epoch, or within `soon` positions of its reader.
    [[nodiscard]] bool is_due(SampleIndex sample, std::uint32_t soon) const;

    // Advances the cursors of the party's streams past unwanted samples and returns the wanted
    // sample that is needed soonest. `steps` bounds the positions looked at and is counted down;
    // nullopt when `steps` is used up or no sample is wanted.
    std::optional<Candidate> nearest(
        const std::function<bool(SampleIndex)>& wants,
        std::uint32_t& steps,
        Party party = kOwnParty);

    // Call when the candidate is being fetched: is_near() holds for it at once, before the cursor
    // passes it.
    void take(const Candidate& candidate);

    // The prefetched sample that is needed last, among samples that `may_go` accepts, in streams of
    // parties that `may_lose` accepts (empty: all parties). Moves that stream's cursor back before
    // the sample. `steps` as in nearest().
    std::optional<SampleIndex> farthest(
        const std::function<bool(SampleIndex)>& may_go,
        std::uint32_t& steps,
        const std::function<bool(Party)>& may_lose = {});

    // Calls `announce` for the samples within `distance` positions ahead of each reader, once per
    // position.
    void read_ahead(std::uint32_t distance, const std::function<void(SampleIndex)>& announce);

private:
    std::map<StreamId, Stream> streams_;
};

}  // namespace stoker::sidecar
