#include "sidecar/core/sampling/replicate_sampler.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "common/base/wire.h"
#include "sidecar/core/sampling/exact_order.h"
#include "sidecar/core/sampling/replicate_order.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kAccuracyMemory = 3;
constexpr std::string_view kMagic = "STKREP1\n";

// A block has at least this many batches of the ranks that have begun an epoch on this node, so
// that copies of a sample are seldom in one batch.
constexpr std::size_t kBlockBatches = 32;

Prng epoch_random(std::uint64_t seed, std::uint64_t epoch) {
    return Prng{Prng{seed}() + epoch};
}

}  // namespace

Result<std::unique_ptr<ReplicateSampler>> ReplicateSampler::create(
    const Residency& node, std::uint32_t count, const SamplerSettings& settings) {
    STOKER_TRY_VOID(settings.check(count));
    // make_unique cannot call the private constructor.
    return std::unique_ptr<ReplicateSampler>{new ReplicateSampler{node, count, settings}};
}

ReplicateSampler::ReplicateSampler(
    const Residency& node, std::uint32_t count, const SamplerSettings& settings)
    : node_(node),
      settings_(settings),
      warmup_epochs_(settings.count<std::uint64_t>("warmupEpochs")),
      scores_(count, settings.number("bias"), settings.number("unseenScore")),
      reads_left_(std::make_shared<ReadsLeft>(count)) {}

void ReplicateSampler::on_validation(double accuracy_change) {
    accuracy_changes_.push_back(accuracy_change);
    if (accuracy_changes_.size() > kAccuracyMemory) {
        accuracy_changes_.pop_front();
    }
}

void ReplicateSampler::on_quality(double accuracy) {
    if (!std::isfinite(accuracy)) {
        return;
    }
    if (accuracy_) {
        on_validation(accuracy - *accuracy_);
    }
    accuracy_ = accuracy;
}

bool ReplicateSampler::is_aggressive() const {
    double sum = 0;
    for (const double change : accuracy_changes_) {
        sum += change;
    }
    return sum > 0;
}

// The epoch's draws, equal for all ranks: the first rank to begin the epoch fixes scores and draws.
// A rank that begins it after another has begun the next epoch gets draws of its own.
std::vector<SampleIndex>& ReplicateSampler::epoch_draws(std::uint64_t epoch) {
    if (drawn_epoch_ == epoch && !draws_.empty()) {
        return draws_;
    }
    draws_ = std::vector<SampleIndex>{};  // frees memory for the next epoch's draws
    if (epoch < warmup_epochs_) {
        draws_ = epoch_order({.count = scores_.size(), .seed = settings_.seed}, epoch, 0);
    } else {
        draw_epoch(epoch);
    }
    drawn_epoch_ = epoch;
    return draws_;
}

void ReplicateSampler::draw_epoch(std::uint64_t epoch) {
    if (!drawn_epoch_ || *drawn_epoch_ < epoch) {
        scores_.end_epoch();
    }
    Prng prng = epoch_random(settings_.seed, epoch);
    draws_ = scores_.draw(scores_.size(), prng);
    blocks_ = blocks_of(draws_);
    if (is_aggressive() && settings_.ranks > 1) {
        draws_ = gather_copies(std::move(draws_), scores_.size(), settings_.ranks);
    }
}

// Number of blocks, chosen so that a block has no more repeated draws than the node has residents.
// Counts only draws of the ranks that have begun any epoch here so far; in the first epoch that may
// be one rank.
std::uint32_t ReplicateSampler::blocks_of(std::span<const SampleIndex> draws) const {
    std::vector<bool> drawn(scores_.size());
    std::size_t repeats = 0;
    for (const SampleIndex sample : draws) {
        repeats += drawn[sample] ? 1 : 0;
        drawn[sample] = true;
    }
    std::size_t residents = 0;
    for (SampleIndex sample = 0; sample < scores_.size(); ++sample) {
        residents += node_.is_stored(sample) && node_.is_kept(sample) ? 1 : 0;
    }
    if (residents == 0) {
        return 1;  // no room in which samples could wait for their copies
    }
    const auto begun_here = [this](std::size_t count) {
        return count * ranks_.size() / settings_.ranks;
    };
    const std::size_t most = begun_here(draws.size()) / settings_.batch / kBlockBatches;
    const std::size_t blocks = (begun_here(repeats) + residents - 1) / residents;
    return static_cast<std::uint32_t>(std::max(std::min(blocks, most), std::size_t{1}));
}

// The rank's share of the epoch's draws; frees the draws when the last rank has its share.
std::vector<SampleIndex> ReplicateSampler::take_part(std::uint32_t rank, std::uint64_t epoch) {
    Rank& state = ranks_[rank];
    state.order = std::vector<SampleIndex>{};  // frees memory for the next order
    std::vector<SampleIndex>& draws = epoch_draws(epoch);
    state.begun = epoch + 1;
    const EpochShape shape{.count = scores_.size(), .ranks = settings_.ranks};
    return all_have_begun(epoch) ? deal(shape, std::exchange(draws, {}), rank)
                                 : deal(shape, draws, rank);
}

// Whether all ranks have begun this epoch and none a later one. A rank in a later epoch may still
// begin this one, when its trainer resumes from an older checkpoint.
bool ReplicateSampler::all_have_begun(std::uint64_t epoch) const {
    return ranks_.size() == settings_.ranks &&
           std::ranges::all_of(
               ranks_, [epoch](const auto& entry) { return entry.second.begun == epoch + 1; });
}

void ReplicateSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    Rank& state = ranks_[rank];
    if (state.begun != epoch + 1) {  // beginning an epoch again gives the same order
        const bool moves_on = state.begun > 0 && state.begun <= epoch;
        state.order = take_part(rank, epoch);
        if (epoch >= warmup_epochs_) {
            arrange(state.order, rank, epoch);
        }
        const auto skipped = std::min<std::size_t>(skip, state.order.size());
        count_reads(std::span{state.order}.subspan(skipped), epoch, moves_on);
    }
    state.rewind(epoch);
    state.read.assign(scores_.size(), false);
    skip_draws(rank, skip);
}

// Reads each resident `replication` times in all (1.5: every second one twice) and leaves out other
// samples to keep the total; then gathers the copies of the others. In place: the repeats overwrite
// the samples left out.
void ReplicateSampler::arrange(
    std::vector<SampleIndex>& part, std::uint32_t rank, std::uint64_t epoch) const {
    const Prng of_epoch = epoch_random(Prng{settings_.seed}(), epoch);
    Prng prng{epoch_random(settings_.seed, epoch)() + rank};
    shuffle(part, prng);
    const auto others = std::partition(
        part.begin(), part.end(), [this](SampleIndex sample) { return node_.is_stored(sample); });
    const auto residents = static_cast<std::size_t>(others - part.begin());
    const auto copies = static_cast<std::size_t>(
        static_cast<double>(residents) * (settings_.number("replication") - 1));
    const std::size_t first_other = std::min(part.size(), residents + copies);
    for (std::size_t i = residents; i < first_other; ++i) {
        part[i] = part[i - residents];
    }
    gather_repeats(std::span{part}.subspan(first_other), blocks_, of_epoch);
}

// The first rank that begins another epoch clears the counts of the last one. That epoch is the
// next one, or an earlier one that the trainer repeats from a checkpoint. `moves_on`: the rank
// comes from an earlier epoch; if other ranks are then already in a later one, their counts stay.
void ReplicateSampler::count_reads(
    std::span<const SampleIndex> order, std::uint64_t epoch, bool moves_on) {
    const bool is_behind = moves_on && counted_epoch_ > epoch;
    if (counted_epoch_ != epoch && !is_behind) {
        reads_left_->clear();
        counted_epoch_ = epoch;
    }
    reads_left_->add(order);
}

void ReplicateSampler::on_read(std::span<const SampleIndex> samples) {
    std::ranges::for_each(samples, [this](SampleIndex sample) { reads_left_->on_read(sample); });
}

void ReplicateSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    Rank& state = ranks_.at(rank);
    const auto repeats = [&state](SampleIndex sample, std::size_t /*position*/) {
        const bool repeated = state.read[sample];
        state.read[sample] = true;
        return repeated;
    };
    state.draw(count, repeats, draws);
}

void ReplicateSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    ranks_.at(rank).foresee(count, samples);
}

void ReplicateSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> samples, std::span<const float> losses) {
    const auto used = scores_.on_batch(samples, losses);
    if (const auto state = ranks_.find(rank); state != ranks_.end()) {
        state->second.report.count_losses(used, samples.size(), losses.size());
    }
    importance_stale_ = true;
}

EpochReport ReplicateSampler::report(std::uint32_t rank) const {
    const Rank& state = ranks_.at(rank);
    EpochReport report = state.report;
    // Counts the share's samples that were not served, each once.
    if (state.position == state.order.size()) {
        report.skipped = state.order.size() - report.distinct;
    }
    return report;
}

std::span<const float> ReplicateSampler::relative_importance() const {
    if (std::exchange(importance_stale_, false)) {
        scores_.ranks(importance_);
    }
    return importance_;
}

std::string ReplicateSampler::snapshot() const {
    const auto state = scores_.state();
    WireWriter wire;
    wire.put_text(kMagic).put(std::uint64_t{state.scores.size()});
    wire.put(state.floor).put(state.last_mean).put(std::uint64_t{accuracy_changes_.size()});
    for (const double change : accuracy_changes_) {
        wire.put(change);
    }
    wire.put_bytes(std::as_bytes(std::span{state.scores}));
    return wire.text();
}

bool ReplicateSampler::restore(std::string_view snapshot) {
    WireReader wire{std::as_bytes(std::span{snapshot})};
    if (wire.get_text(kMagic.size()) != kMagic || wire.get<std::uint64_t>() != scores_.size()) {
        return false;
    }
    const auto next_finite = [&wire]<class Value>(Value& value) {
        value = wire.get<Value>();
        return wire.ok() && std::isfinite(value);
    };
    ReplicateScores::State state;
    if (!next_finite(state.floor) || !next_finite(state.last_mean)) {
        return false;
    }
    const auto changes = wire.get<std::uint64_t>();
    std::deque<double> accuracy(std::min<std::uint64_t>(changes, kAccuracyMemory));
    state.scores.resize(scores_.size());
    const bool whole = changes <= kAccuracyMemory && std::ranges::all_of(accuracy, next_finite) &&
                       std::ranges::all_of(state.scores, next_finite) && wire.left() == 0;
    if (whole) {
        accuracy_changes_ = std::move(accuracy);
        scores_.set_state(std::move(state));
        draws_.clear();
        drawn_epoch_.reset();
        counted_epoch_.reset();
        for (auto& [number, rank] : ranks_) {
            rank.begun = 0;
        }
        importance_stale_ = true;
    }
    return whole;
}

}  // namespace stoker::sidecar
