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

// Identifies one rank's sampler together with its DataLoader workers: all send the same number in
// their Hello.
using StreamId = Strong<std::uint64_t, struct StreamIdTag>;

struct Stream {
    Party party = kOwnParty;
    std::uint32_t connections = 0;
    std::uint32_t holds = 0;  // connections that currently forbid prefetching for it
    std::optional<StreamPlan> plan;
    std::uint32_t cursor = 0;      // prefetch has handled every position before it
    std::uint32_t high_water = 0;  // furthest cursor so far; samples before it are near
    std::uint32_t readahead = 0;   // residents before it were announced to the page cache
    bool by_chunk = false;         // reads groups of chunks, which are fetched together
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

    // Removes a connection; returns the plan if it was the stream's last one.
    std::optional<StreamPlan> leave(StreamId stream);

    // Returns the replaced plan. is_near() still holds for samples prefetched because the old plan
    // looked into the new plan's epoch. The stream must have joined.
    std::optional<StreamPlan> replace_plan(StreamId stream, StreamPlan plan);

    // Replaces the end of the stream's plan, which must exist; returns the unread samples that it cut
    // off.
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

    // nullptr: the stream is unknown or has no plan.
    [[nodiscard]] Stream* with_plan(StreamId stream);

    // Positions of the stream's plan of this epoch; 0: it has none, or one that looks into the next
    // epoch, which cannot be extended.
    [[nodiscard]] std::uint32_t plan_size(StreamId stream, std::uint64_t epoch) const;

    // Whether a stream of the own party that `chosen` selects has a plan.
    [[nodiscard]] bool any_own_plan(const std::function<bool(StreamId)>& chosen) const;

    // Call after `sample` was dropped: every stream that still needs it considers it again.
    void rewind(SampleIndex sample);

    // As rewind(), after many samples were dropped.
    void rewind_all();

    // Positions between a reader and its next need of `sample`, the least of all streams; nullopt:
    // no stream needs it.
    [[nodiscard]] std::optional<std::uint32_t> distance(SampleIndex sample) const;

    // Whether a stream needs the sample within the range that it has prefetched (before its
    // `high_water`), so that dropping the sample undoes a prefetch. Counts streams of the own
    // party, of the party that the sample is `charged` to, and of `other`, the party that asks for
    // room.
    [[nodiscard]] bool is_near(
        SampleIndex sample, Party charged = kOwnParty, Party other = kOwnParty) const;

    // As is_near(), for the streams of all parties.
    [[nodiscard]] bool is_near_any(SampleIndex sample) const;

    // As is_near(), for the streams of one party.
    [[nodiscard]] bool is_near_for(Party party, SampleIndex sample) const;

    [[nodiscard]] bool has_own_stream() const {
        return std::ranges::any_of(
            streams_, [](const auto& entry) { return entry.second.party == kOwnParty; });
    }

    // Whether a stream needs the sample in its epoch, or within `soon` positions of its reader.
    [[nodiscard]] bool is_due(SampleIndex sample, std::uint32_t soon) const;

    // Advances the cursors of the party's streams past unwanted samples and returns the wanted
    // sample that is needed soonest. `steps` bounds the positions looked at and is counted down;
    // nullopt when it is used up or nothing is wanted.
    std::optional<Candidate> nearest(
        const std::function<bool(SampleIndex)>& wants,
        std::uint32_t& steps,
        Party party = kOwnParty);

    // Call when the candidate is being fetched: is_near() holds for it at once, before the cursor
    // passes it.
    void take(const Candidate& candidate);

    // The prefetched sample that is needed last, among those that `may_go` accepts, in the streams
    // of parties that `may_lose` accepts (empty: all). The stream's cursor moves back before it.
    // `steps` as in nearest().
    std::optional<SampleIndex> farthest(
        const std::function<bool(SampleIndex)>& may_go,
        std::uint32_t& steps,
        const std::function<bool(Party)>& may_lose = {});

    // Calls `announce` for the samples within `distance` positions of each reader, once per
    // position.
    void read_ahead(std::uint32_t distance, const std::function<void(SampleIndex)>& announce);

private:
    std::map<StreamId, Stream> streams_;
};

}  // namespace stoker::sidecar
