#include "sidecar/core/sampling/replicate_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "common/base/check.h"
#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {

namespace {

constexpr std::size_t kAccuracyMemory = 3;
constexpr std::string_view kMagic = "STKREP1\n";

// Most drawn first; the copies of a sample stand together.
void sort_by_multiplicity(std::vector<SampleIndex>& draws, std::uint32_t sample_count) {
    std::vector<std::uint32_t> times(sample_count);
    for (const SampleIndex sample : draws) {
        ++times[sample];
    }
    std::ranges::sort(draws, [&times](SampleIndex a, SampleIndex b) {
        return times[a] != times[b] ? times[a] > times[b] : a < b;
    });
}

template <class Value>
void put(const Value& value, std::string& text) {
    char raw[sizeof(Value)];
    std::memcpy(raw, &value, sizeof(Value));
    text.append(raw, sizeof(Value));
}

template <class Value>
bool take(std::string_view& text, Value& value) {
    if (text.size() < sizeof(Value)) {
        return false;
    }
    std::memcpy(&value, text.data(), sizeof(Value));
    text.remove_prefix(sizeof(Value));
    return true;
}

}  // namespace

Result<std::unique_ptr<ReplicateSampler>> ReplicateSampler::make(
    std::uint32_t sample_count, const ReplicateOptions& options, const World& world) {
    const double halves = options.replication * 2;
    if (sample_count == 0 || !(options.bias > 1) || !(options.replication >= 1) ||
        halves != std::floor(halves) || !(options.unseen_score >= 0)) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "replicate needs samples, a bias above 1, a replication of 1, 1.5, 2, ... and an "
                "unseen score of 0 or more; not {}, {}, {} and {}",
                sample_count,
                options.bias,
                options.replication,
                options.unseen_score));
    }
    // Not make_unique: the constructor is private.
    std::unique_ptr<ReplicateSampler> sampler{new ReplicateSampler{sample_count, options}};
    sampler->ranks_in_world_ = world.ranks;
    for (const std::uint32_t local : world.local_ranks) {
        if (local >= world.ranks) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("rank {} is outside a world of {}", local, world.ranks));
        }
        sampler->ranks_.emplace_back().rank = local;
    }
    return sampler;
}

ReplicateSampler::ReplicateSampler(std::uint32_t sample_count, const ReplicateOptions& options)
    : options_(options),
      scores_(sample_count, options.bias, options.unseen_score),
      stored_(sample_count) {}

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

// The same for all ranks that begin the epoch: the first one's begin fixes scores and draws. A rank
// that comes after others have begun the next epoch gets draws of its own.
std::vector<SampleIndex>& ReplicateSampler::epoch_draws(std::uint64_t epoch) {
    if (drawn_epoch_ == epoch && !draws_.empty()) {
        return draws_;
    }
    draws_ = std::vector<SampleIndex>{};  // its memory is for the next ones
    if (epoch < options_.warmup_epochs) {
        draws_ = epoch_order({.count = scores_.size(), .seed = options_.seed}, epoch, 0);
    } else {
        if (!drawn_epoch_ || *drawn_epoch_ < epoch) {
            scores_.end_epoch();
        }
        Prng prng{Prng{options_.seed}() + epoch};
        draws_ = scores_.draw(scores_.size(), prng);
        if (is_aggressive()) {
            sort_by_multiplicity(draws_, scores_.size());
        }
    }
    drawn_epoch_ = epoch;
    return draws_;
}

// The rank's part of the epoch's draws, which go when the last rank has its own.
std::vector<SampleIndex> ReplicateSampler::take_part(Rank& rank, std::uint64_t epoch) {
    rank.order = std::vector<SampleIndex>{};  // its memory is for the next one
    std::vector<SampleIndex>& draws = epoch_draws(epoch);
    rank.begun = epoch + 1;
    const EpochShape shape{.count = scores_.size(), .ranks = ranks_in_world_};
    return all_have_begun(epoch) ? deal(shape, std::exchange(draws, {}), rank.rank)
                                 : deal(shape, draws, rank.rank);
}

bool ReplicateSampler::all_have_begun(std::uint64_t epoch) const {
    return ranks_.size() == ranks_in_world_ &&
           std::ranges::all_of(ranks_, [epoch](const Rank& rank) { return rank.begun > epoch; });
}

void ReplicateSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    Rank& state = ranks_[find(rank)];
    if (state.begun != epoch + 1) {  // who begins again reads the same again
        state.order = take_part(state, epoch);
        Prng prng{Prng{Prng{options_.seed}() + epoch}() + rank};
        if (epoch >= options_.warmup_epochs) {
            replicate(state.order, prng);
        }
    }
    state.position = 0;
    state.read.assign(scores_.size(), false);
    state.report = EpochReport{.epoch = epoch};
    std::vector<Draw> forgotten;
    draw(rank, std::min<std::uint64_t>(skip, state.order.size()), forgotten);
}

// Residents `replication` times (a half: every second one once more), then the others, as many as
// before in all. In place: what is read again takes the places of what is left out.
void ReplicateSampler::replicate(std::vector<SampleIndex>& part, Prng& prng) const {
    shuffle(part, prng);
    const auto others = std::partition(
        part.begin(), part.end(), [this](SampleIndex sample) { return stored_[sample]; });
    const auto residents = static_cast<std::size_t>(others - part.begin());
    const auto copies =
        static_cast<std::size_t>(static_cast<double>(residents) * (options_.replication - 1));
    for (std::size_t i = residents; i < std::min(part.size(), residents + copies); ++i) {
        part[i] = part[i - residents];
    }
}

void ReplicateSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    Rank& state = ranks_[find(rank)];
    const std::size_t end = std::min(state.position + count, state.order.size());
    for (; state.position < end; ++state.position) {
        const SampleIndex sample = state.order[state.position];
        const bool repeated = state.read[sample];
        state.read[sample] = true;
        draws.push_back({sample, sample, repeated ? Draw::Kind::kRepeated : Draw::Kind::kPlain});
        ++state.report.requested;
        ++(repeated ? state.report.repeated : state.report.distinct);
    }
}

void ReplicateSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const Rank& state = ranks_[find(rank)];
    const std::size_t end = std::min(state.position + count, state.order.size());
    samples.insert(
        samples.end(),
        state.order.begin() + static_cast<std::ptrdiff_t>(state.position),
        state.order.begin() + static_cast<std::ptrdiff_t>(end));
}

void ReplicateSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> samples, std::span<const float> losses) {
    const auto used = scores_.on_batch(samples, losses);
    EpochReport& report = ranks_[find(rank)].report;
    report.losses_used += used.used;
    report.losses_ignored += used.ignored;
    importance_stale_ = true;
}

EpochReport ReplicateSampler::report(std::uint32_t rank) const {
    const Rank& state = ranks_[find(rank)];
    EpochReport report = state.report;
    // The samples of a share without repetition that did not come.
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
    std::string text{kMagic};
    put(static_cast<std::uint64_t>(state.scores.size()), text);
    put(state.floor, text);
    put(state.last_mean, text);
    put(static_cast<std::uint64_t>(accuracy_changes_.size()), text);
    for (const double change : accuracy_changes_) {
        put(change, text);
    }
    for (const float score : state.scores) {
        put(score, text);
    }
    return text;
}

bool ReplicateSampler::restore(std::string_view snapshot) {
    if (!snapshot.starts_with(kMagic)) {
        return false;
    }
    snapshot.remove_prefix(kMagic.size());
    ReplicateScores::State state;
    std::uint64_t samples = 0;
    std::uint64_t changes = 0;
    if (!take(snapshot, samples) || samples != scores_.size() || !take(snapshot, state.floor) ||
        !take(snapshot, state.last_mean) || !take(snapshot, changes) || changes > kAccuracyMemory ||
        !std::isfinite(state.floor) || !std::isfinite(state.last_mean)) {
        return false;
    }
    std::deque<double> accuracy(changes);
    const auto finite = [&snapshot](auto& value) {
        return take(snapshot, value) && std::isfinite(value);
    };
    state.scores.resize(samples);
    const bool whole = std::ranges::all_of(accuracy, finite) &&
                       std::ranges::all_of(state.scores, finite) && snapshot.empty();
    if (whole) {
        accuracy_changes_ = std::move(accuracy);
        scores_.set_state(std::move(state));
        draws_.clear();
        drawn_epoch_.reset();
        for (Rank& rank : ranks_) {
            rank.begun = 0;
        }
        importance_stale_ = true;
    }
    return whole;
}

std::size_t ReplicateSampler::find(std::uint32_t rank) const {
    const auto found = std::ranges::find(ranks_, rank, &Rank::rank);
    STOKER_CHECK(found != ranks_.end(), "only local ranks draw");
    return static_cast<std::size_t>(found - ranks_.begin());
}

}  // namespace stoker::sidecar
