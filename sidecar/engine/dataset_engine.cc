#include "sidecar/engine/dataset_engine.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/domain/segment_format.h"

namespace stoker::sidecar {

namespace {

constexpr Bytes kChunkBytes = mib(4);  // DIESEL's object size

// Size of a sample of mean size as stored on the node, with its record header.
Bytes mean_record(const SampleSizes& sizes) {
    return Bytes{domain::record_bytes(sizes.total().count() / sizes.count())};
}

// Number of samples of mean size that fit into the bytes; at least one.
std::uint32_t samples_in(Bytes bytes, Bytes mean, std::uint64_t samples) {
    return static_cast<std::uint32_t>(
        std::clamp(bytes.count() / mean.count(), std::uint64_t{1}, samples));
}

// Sizes by sample. Empty if all samples have the same size.
SharedImportance::SizeOf size_of(const SampleSizes& sizes) {
    for (SampleIndex sample = 1; sample < sizes.count(); ++sample) {
        if (sizes.of(sample) != sizes.of(0)) {
            return [sizes](SampleIndex at) { return sizes.of(at); };
        }
    }
    return {};
}

}  // namespace

DatasetEngine::DatasetEngine(
    const SampleSizes& sizes,
    EngineLimits limits,
    EngineGrant grant,
    std::unique_ptr<EvictionPolicy> eviction,
    SampleChunks chunks)
    : chunks_(std::move(chunks)),
      keeps_by_importance_(eviction == nullptr),
      standard_window_(limits.window),
      mean_record_(mean_record(sizes)),
      window_size_(limits.window, sizes.count()),
      scan_window_(limits.window),
      contracts_(
          static_cast<std::uint32_t>(sizes.count()),
          samples_in(limits.window, mean_record_, sizes.count()),
          size_of(sizes),
          samples_in(kChunkBytes, mean_record_, sizes.count()),
          &chunks_),
      fetch_(sizes, limits, grant, std::move(eviction)),
      samplers_(
          fetch_.residency(),
          static_cast<std::uint32_t>(sizes.count()),
          contracts_,
          SamplerService::Limits{},
          [this](SampleIndex sample) { return fetch_.record_bytes(sample); }) {
    fetch_.set_listener(&samplers_);
    fetch_.set_chunks(chunks_.is_empty() ? nullptr : &chunks_);
}

void DatasetEngine::adopt(SampleIndex sample, domain::SegmentClass segment_class) {
    fetch_.adopt(sample, segment_class);
    samplers_.note_paid(sample);
}

Result<local::Begun> DatasetEngine::begin(
    const Reader& reader,
    const local::Begin& begin,
    const BeginState& state,
    TimePoint now,
    Effects& effects) {
    STOKER_TRY(
        const local::Begun begun,
        samplers_.begin(reader.stream, begin, state, reader.sidecar, reader.party));
    fetch_.set_window_keeper(contracts_.window_keeper());
    fetch_.set_by_chunk(reader.stream, samplers_.reads_groups(reader.stream));
    drawing_.insert(reader.stream);
    importance().set_others_read(
        fetch_.any_own_plan([this](StreamId other) { return !drawing_.contains(other); }));
    if (auto eviction = keeps_by_importance_ ? importance().new_eviction() : nullptr) {
        fetch_.set_eviction(std::move(eviction));
    }
    fetch_.set_ranked_by_guests(importance().is_guests_only());
    size_window();
    effects = plan_ahead(reader.connection, reader.stream, now);
    return begun;
}

void DatasetEngine::leave(StreamId stream) {
    samplers_.leave(stream);
    fetch_.set_by_chunk(stream, false);
    drawing_.erase(stream);
    size_window();
    fetch_.set_ranked_by_guests(importance().is_guests_only());
}

Result<local::Drawn> DatasetEngine::draw(
    ConnectionId connection,
    StreamId stream,
    const local::Draw& draw,
    TimePoint now,
    Effects& effects) {
    STOKER_TRY(local::Drawn drawn, samplers_.draw(stream, draw));
    size_window();
    effects = plan_ahead(connection, stream, now);
    return drawn;
}

Effects DatasetEngine::on_consumed(
    ConnectionId connection,
    std::optional<StreamId> stream,
    std::uint64_t epoch,
    const std::vector<SampleIndex>& samples,
    TimePoint now,
    ReadCounts& counts) {
    samplers_.on_read(stream, samples);
    size_window();
    return fetch_.on_consumed(connection, epoch, samples, now, &counts);
}

// While several jobs share the window, it needs room for two things: their unread draws, because a
// sample that one job has read and another has not must stay, and lookaheads, up to half of the
// standard window. A job alone needs only the standard window: its draws can be fetched just before
// they are read, and the rest saves more fetches as residents. Before the first grant nothing can
// be borrowed, so no need is recorded.
void DatasetEngine::size_window() {
    const WindowSharing& sharing = samplers_.sharing();
    if (!sharing.is_shared() || !fetch_.grant().is_ordered()) {
        window_size_.reset();
    } else {
        const std::uint64_t lookaheads =
            std::uint64_t{2} * ScanLimits{}.lookahead_max * sharing.readers();
        window_size_.note(
            sharing.unread().bytes() +
                std::min(mean_record_ * lookaheads, Bytes{standard_window_.count() / 2}),
            sharing.draws() - draws_noted_);
    }
    draws_noted_ = sharing.draws();
    fetch_.set_window(window_size_.size());
    if (scan_window_ != fetch_.window()) {  // a grant may have changed it, too
        scan_window_ = fetch_.window();
        contracts_.set_own_window(samples_in(scan_window_, mean_record_, fetch_.sizes().count()));
    }
}

// Turns the sampler's next samples into a plan for the fetch engine, one slice at a time.
Effects DatasetEngine::plan_ahead(ConnectionId connection, StreamId stream, TimePoint now) {
    const std::uint64_t epoch = samplers_.epoch(stream);
    auto tail = samplers_.new_plan(stream, fetch_.plan_size(connection, epoch));
    if (!tail) {
        return fetch_.tick(now);  // drops what a smaller window has no room for
    }
    if (tail->from > 0) {
        return fetch_.extend_plan(connection, *tail, now);
    }
    auto plan = StreamPlan::make(epoch, std::move(tail->samples), 0, fetch_.sizes().count());
    STOKER_CHECK(plan.has_value(), "the service plans samples of the dataset");
    return fetch_.on_plan(connection, *std::move(plan), now);
}

}  // namespace stoker::sidecar
