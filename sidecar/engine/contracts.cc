#include "sidecar/engine/contracts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/domain/contract_table.h"
#include "sidecar/core/sampling/bucket_sampler.h"
#include "sidecar/core/sampling/chunk_order.h"
#include "sidecar/core/sampling/exact_sampler.h"
#include "sidecar/core/sampling/importance_sampler.h"
#include "sidecar/core/sampling/replicate_sampler.h"
#include "sidecar/core/sampling/windowed_sampler.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kScanSeed = 0x53544F4B4552ULL;

// A contract's parameters as they came. Every one has to be asked for.
class Parameters {
public:
    explicit Parameters(const SamplerOrder& order)
        : order_(order) {}

    // Within the bounds of the table, or `otherwise` where it was not given.
    double number(std::string_view name, double otherwise) {
        known_.emplace_back(name);
        const auto found = std::ranges::find(order_.parameters, name, &local::Parameter::name);
        if (found == order_.parameters.end()) {
            return otherwise;
        }
        const domain::ContractParameter* row = domain::find_parameter(order_.contract, name);
        STOKER_CHECK(row != nullptr, "only parameters of the table are asked for");
        if (!(found->value >= row->least && found->value <= row->most)) {
            wrong_ =
                fmt::format("{} is {}, outside {}..{}", name, found->value, row->least, row->most);
            return otherwise;
        }
        return found->value;
    }

    template <class Count>
    Count count(std::string_view name, Count otherwise) {
        return static_cast<Count>(number(name, static_cast<double>(otherwise)));
    }

    // What was wrong, when everything was asked for.
    [[nodiscard]] Status check() const {
        if (!wrong_.empty()) {
            return fail(ErrorCode::kInvalidArgument, wrong_);
        }
        for (const local::Parameter& given : order_.parameters) {
            if (std::ranges::find(known_, given.name) == known_.end()) {
                return fail(
                    ErrorCode::kInvalidArgument,
                    fmt::format(
                        "contract '{}' has no parameter '{}' here; it has: {}",
                        order_.contract,
                        given.name,
                        known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", "))));
            }
        }
        return {};
    }

private:
    const SamplerOrder& order_;
    std::vector<std::string> known_;
    std::string wrong_;
};

bool is_iowa(const SamplerOrder& order) {
    const auto family = std::ranges::find(order.parameters, "family", &local::Parameter::name);
    return family != order.parameters.end() && family->value == 1;
}

}  // namespace

Contracts::Contracts(
    std::uint32_t sample_count,
    std::uint32_t window_samples,
    SharedImportance::SizeOf size_of,
    std::uint32_t chunk_samples)
    : sample_count_(sample_count),
      window_samples_(window_samples),
      chunk_samples_(std::max(chunk_samples, 1U)),
      size_of_(std::move(size_of)),
      scans_(sample_count),
      importance_(sample_count, size_of_) {}

Contracts::~Contracts() = default;

Result<std::unique_ptr<Sampler>> Contracts::make(
    const Residency& node, const SamplerOrder& order, std::uint32_t rank) {
    if (order.contract == "windowed") {
        return make_windowed(node, order, rank);
    }
    if (order.contract == "importance") {
        return is_iowa(order) ? make_buckets(node, order) : make_importance(node, order);
    }
    if (order.contract == "replicate") {
        return make_replicate(node, order);
    }
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "no contract '{}'; this sidecar draws: importance, replicate, windowed",
            order.contract));
}

bool Contracts::is_per_rank(const std::string& contract) const {
    return contract == "windowed";
}

Result<std::unique_ptr<Sampler>> Contracts::make_windowed(
    const Residency& node, const SamplerOrder& order, std::uint32_t rank) {
    Parameters parameters{order};
    ScanLimits limits;
    limits.window_samples = window_samples_;
    limits.drift_max = parameters.number("drift", limits.drift_max);
    const auto group = parameters.count("chunkGroup", 0U);
    STOKER_TRY_VOID(parameters.check());
    if (group != 0) {
        return make_chunked(order, rank, group);
    }
    STOKER_TRY(SharedScan * scan, scan_of(node, order.party, limits));
    EpochShape shape;
    shape.count = sample_count_;
    shape.seed = order.seed;
    shape.ranks = order.ranks;
    return WindowedSampler::make(*scan, shape, World{order.ranks, {rank}});
}

Result<SharedScan*> Contracts::scan_of(
    const Residency& node, Party party, const ScanLimits& limits) {
    const bool is_new = !scans_.has(party);
    SharedScan* scan = scans_.find_or_make(party, limits, kScanSeed);
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

// The order is given, so this job takes no part in the scan that others share.
std::unique_ptr<Sampler> Contracts::make_chunked(
    const SamplerOrder& order, std::uint32_t rank, std::uint32_t group) const {
    std::vector<std::uint32_t> chunk_of(sample_count_);
    for (SampleIndex sample = 0; sample < sample_count_; ++sample) {
        chunk_of[sample] = sample / chunk_samples_;
    }
    EpochShape shape;
    shape.count = sample_count_;
    shape.seed = order.seed;
    shape.ranks = order.ranks;
    const std::uint32_t chunks = (sample_count_ + chunk_samples_ - 1) / chunk_samples_;
    return std::make_unique<ExactSampler>(
        shape,
        World{order.ranks, {rank}},
        [chunk_of = std::move(chunk_of), chunks, group, seed = order.seed](std::uint64_t epoch) {
            return chunk_order(chunk_of, chunks, group, seed, epoch);
        });
}

Result<std::unique_ptr<Sampler>> Contracts::make_importance(
    const Residency& node, const SamplerOrder& order) const {
    Parameters parameters{order};
    ImportanceSettings settings;
    settings.world.ranks = order.ranks;
    settings.seed = order.seed;
    settings.beta = parameters.number("beta", settings.beta);
    settings.h_share = parameters.number("hShare", settings.h_share);
    settings.warmup = parameters.count("warmupEpochs", settings.warmup);
    settings.reuse_factor = parameters.count("reuseFactor", settings.reuse_factor);
    settings.loss_history = parameters.count("lossHistory", settings.loss_history);
    settings.substitute = parameters.count("substitute", 1) != 0;
    parameters.count("family", 0);
    settings.l_share = parameters.number("lShare", settings.l_share);
    STOKER_TRY_VOID(parameters.check());
    return ImportanceSampler::create(node, sample_count_, settings);
}

// Near-duplicates are those of the fingerprints that trainers tell: that takes a decoded sample,
// which the sidecar never has.
Result<std::unique_ptr<Sampler>> Contracts::make_buckets(
    const Residency& node, const SamplerOrder& order) const {
    Parameters parameters{order};
    BucketSettings settings;
    settings.criteria.size_of = size_of_;
    settings.world.ranks = order.ranks;
    settings.seed = order.seed;
    settings.warmup = parameters.count("warmupEpochs", settings.warmup);
    settings.out_rate = parameters.number("outRate", settings.out_rate);
    settings.min_fraction = parameters.number("minFraction", settings.min_fraction);
    settings.recall_after = parameters.count("recallAfter", settings.recall_after);
    settings.recall_fraction = parameters.number("recallFraction", settings.recall_fraction);
    parameters.count("family", 1);
    settings.redundancy = static_cast<Redundancy>(parameters.count("redundancy", 0));
    STOKER_TRY_VOID(parameters.check());
    return BucketSampler::create(node, sample_count_, std::move(settings));
}

Result<std::unique_ptr<Sampler>> Contracts::make_replicate(
    const Residency& node, const SamplerOrder& order) const {
    Parameters parameters{order};
    ReplicateOptions options;
    options.seed = order.seed;
    options.bias = parameters.number("bias", options.bias);
    options.replication = parameters.number("replication", options.replication);
    options.warmup_epochs = parameters.count("warmupEpochs", options.warmup_epochs);
    options.unseen_score = parameters.number("unseenScore", options.unseen_score);
    STOKER_TRY_VOID(parameters.check());
    World world{order.ranks, {}};
    for (std::uint32_t rank = 0; rank < order.ranks; ++rank) {
        world.local_ranks.push_back(rank);  // any of them may come; the others cost nothing
    }
    return ReplicateSampler::make(node, sample_count_, options, world);
}

}  // namespace stoker::sidecar
