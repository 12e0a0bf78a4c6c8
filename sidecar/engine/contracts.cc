#include "sidecar/engine/contracts.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sidecar/core/sampling/bucket_sampler.h"
#include "sidecar/core/sampling/chunk_order.h"
#include "sidecar/core/sampling/exact_sampler.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "sidecar/core/sampling/replicate_sampler.h"
#include "sidecar/core/sampling/windowed_sampler.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kScanSeed = 0x53544F4B4552ULL;

// A group of a chunk-wise shuffle with more samples is fetched ahead in portions of this many. A
// plan spans two groups and is renewed when half of it was drawn: it always has the next group.
constexpr std::size_t kGroupMax = std::size_t{1} << 17U;

}  // namespace

Contracts::Contracts(
    std::uint32_t sample_count,
    std::uint32_t window_samples,
    SharedImportance::SizeOf size_of,
    std::uint32_t chunk_samples,
    const SampleChunks* chunks)
    : sample_count_(sample_count),
      window_samples_(window_samples),
      chunk_samples_(std::max(chunk_samples, 1U)),
      chunks_(chunks != nullptr && !chunks->is_empty() ? chunks : nullptr),
      size_of_(std::move(size_of)),
      scans_(sample_count),
      importance_(sample_count, size_of_) {}

Contracts::~Contracts() = default;

// Near-duplicates are found by the trainers' fingerprints: they require a decoded sample, which the
// sidecar never has.
Result<std::unique_ptr<Sampler>> Contracts::make(
    const Residency& node, const SamplerSettings& settings, std::uint32_t rank) {
    if (settings.contract == "windowed") {
        return make_windowed(node, settings, rank);
    }
    if (settings.contract == "importance" && settings.is_iowa()) {
        return BucketSampler::create(
            node,
            sample_count_,
            settings,
            {.criteria = {.size_of = size_of_},
             .latency_bytes = [this] { return load_time_.latency_bytes(); }});
    }
    if (settings.contract == "importance") {
        return ImportanceSampler::create(node, sample_count_, settings);
    }
    if (settings.contract == "replicate") {
        return ReplicateSampler::create(node, sample_count_, settings);
    }
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "no contract '{}'; this sidecar knows: importance, replicate, windowed",
            settings.contract));
}

void Contracts::note_load(Bytes size, Duration time) {
    if (time > Duration::zero()) {
        load_time_.note(size, time);
    }
}

bool Contracts::is_per_rank(const std::string& contract) const {
    return contract == "windowed";
}

Result<std::unique_ptr<Sampler>> Contracts::make_windowed(
    const Residency& node, const SamplerSettings& settings, std::uint32_t rank) {
    STOKER_TRY_VOID(settings.check(sample_count_));
    const EpochShape shape{.count = sample_count_, .seed = settings.seed, .ranks = settings.ranks};
    if (const auto group = settings.count<std::uint32_t>("chunkGroup"); group != 0) {
        return make_chunked(shape, group);
    }
    STOKER_TRY(SharedScan * scan, scan_of(node, settings));
    return WindowedSampler::make(*scan, shape, rank);
}

Result<SharedScan*> Contracts::scan_of(const Residency& node, const SamplerSettings& settings) {
    const ScanLimits limits{
        .window_samples = window_samples_, .drift_max = settings.number("drift")};
    const bool is_new = !scans_.has(settings.party);
    SharedScan* scan = scans_.find_or_make(settings.party, limits, kScanSeed);
    if (scan == nullptr) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("{} other namespaces read this dataset windowed", PartyScans::kGuestsMax));
    }
    for (SampleIndex sample = 0; is_new && sample < sample_count_; ++sample) {
        if (node.is_stored(sample)) {
            scan->on_stored(sample, node.is_kept(sample));
        }
    }
    return scan;
}

// The order is fixed in advance, so this job does not take part in the shared scan.
std::unique_ptr<Sampler> Contracts::make_chunked(
    const EpochShape& shape, std::uint32_t group) const {
    if (chunks_ != nullptr) {
        return std::make_unique<ExactSampler>(
            shape,
            [chunks = chunks_, group, shape](std::uint64_t epoch, std::uint32_t rank) {
                return chunk_order(chunks->all(), chunks->count(), group, shape, epoch, rank);
            },
            std::min<std::size_t>(
                {std::size_t{group} * chunks_->largest(), sample_count_, kGroupMax}));
    }
    const std::uint32_t each = chunk_samples_;
    return std::make_unique<ExactSampler>(
        shape, [each, group, shape](std::uint64_t epoch, std::uint32_t rank) {
            std::vector<std::uint32_t> chunk_of(shape.count);
            for (SampleIndex sample = 0; sample < shape.count; ++sample) {
                chunk_of[sample] = sample / each;
            }
            const std::uint32_t chunks = (shape.count + each - 1) / each;
            return chunk_order(chunk_of, chunks, group, shape, epoch, rank);
        });
}

}  // namespace stoker::sidecar
