#include "sidecar/engine/dataset_engine.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

constexpr Bytes kChunkBytes = mib(4);  // DIESEL's object size

// Number of samples of mean size that fit into the bytes; at least one.
std::uint32_t samples_in(Bytes bytes, const SampleSizes& sizes) {
    const std::uint64_t mean = sizes.total().count() / sizes.count() + 1;
    return static_cast<std::uint32_t>(
        std::clamp(bytes.count() / mean, std::uint64_t{1}, sizes.count()));
}

// Empty if all samples have the same size.
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
    std::unique_ptr<EvictionPolicy> eviction)
    : keeps_by_importance_(eviction == nullptr),
      contracts_(
          static_cast<std::uint32_t>(sizes.count()),
          samples_in(limits.window, sizes),
          size_of(sizes),
          samples_in(kChunkBytes, sizes)),
      fetch_(sizes, limits, grant, std::move(eviction)),
      samplers_(fetch_.residency(), static_cast<std::uint32_t>(sizes.count()), contracts_) {
    fetch_.set_listener(&samplers_);
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
    importance().set_others_read(
        fetch_.any_planned([this](StreamId other) { return !samplers_.serves(other); }));
    if (auto eviction = keeps_by_importance_ ? importance().new_eviction() : nullptr) {
        fetch_.set_eviction(std::move(eviction));
    }
    fetch_.set_ranked_by_guests(importance().is_guests_only());
    effects = plan_ahead(reader.connection, reader.stream, now);
    return begun;
}

void DatasetEngine::leave(StreamId stream) {
    samplers_.leave(stream);
    fetch_.set_ranked_by_guests(importance().is_guests_only());
}

Result<local::Drawn> DatasetEngine::draw(
    ConnectionId connection,
    StreamId stream,
    const local::Draw& draw,
    TimePoint now,
    Effects& effects) {
    STOKER_TRY(local::Drawn drawn, samplers_.draw(stream, draw));
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
    return fetch_.on_consumed(connection, epoch, samples, now, &counts);
}

// Turns the sampler's next samples into a plan for the fetch engine, one slice at a time.
Effects DatasetEngine::plan_ahead(ConnectionId connection, StreamId stream, TimePoint now) {
    auto samples = samplers_.new_plan(stream);
    if (!samples) {
        return {};
    }
    auto plan =
        StreamPlan::make(samplers_.epoch(stream), *std::move(samples), 0, fetch_.sizes().count());
    STOKER_CHECK(plan.has_value(), "the service plans samples of the dataset");
    return fetch_.on_plan(connection, *std::move(plan), now);
}

}  // namespace stoker::sidecar
