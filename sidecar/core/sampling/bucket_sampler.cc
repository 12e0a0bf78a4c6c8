#include "sidecar/core/sampling/bucket_sampler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/base/prng.h"

namespace stoker::sidecar {

namespace {

// As the operator's profile, which calls a job compute-bound under 1.05 and until 1.10.
constexpr double kWaitsBelow = 0.05;
constexpr double kWaitsFrom = 0.10;

bool is_share(double value) {
    return value >= 0 && value <= 1;
}

Status check(std::uint32_t count, const BucketSettings& settings) {
    const auto refuse = [](const char* text) { return fail(ErrorCode::kInvalidArgument, text); };
    if (count == 0) {
        return refuse("the dataset is empty");
    }
    if (settings.world.ranks == 0) {
        return refuse("ranks: must be at least 1");
    }
    if (!is_share(settings.out_rate) || !is_share(settings.min_fraction) ||
        !is_share(settings.recall_fraction) || !is_share(settings.progress)) {
        return refuse("out_rate, min_fraction, recall_fraction, progress: must be 0 to 1");
    }
    if (settings.recall_after == 0) {
        return refuse("recallAfter: must be at least 1");
    }
    const CriteriaSettings& criteria = settings.criteria;
    if (!(criteria.cross_entropy >= 0) || !(criteria.margin >= 0) || !(criteria.fetch >= 0)) {
        return refuse("criteria: weights must be 0 or more");
    }
    return {};
}

}  // namespace

Result<std::unique_ptr<BucketSampler>> BucketSampler::create(
    const Residency& node, std::uint32_t count, BucketSettings settings, RedundancyGroups groups) {
    STOKER_TRY_VOID(check(count, settings));
    return std::unique_ptr<BucketSampler>(
        new BucketSampler(node, count, std::move(settings), std::move(groups)));
}

BucketSampler::BucketSampler(
    const Residency& node, std::uint32_t count, BucketSettings settings, RedundancyGroups groups)
    : node_(node),
      count_(count),
      settings_(std::move(settings)),
      groups_(std::move(groups)),
      criteria_(count, settings_.criteria),
      waiting_(count, false),
      worths_(count, 1),
      bucket_count_(count) {
    count_bucket();
}

BucketSampler::Reader& BucketSampler::reader_of(std::uint32_t rank) {
    STOKER_CHECK(rank < settings_.world.ranks, "a rank is below the number of ranks");
    return readers_.try_emplace(rank, count_).first->second;
}

std::uint32_t BucketSampler::turns() const {
    const std::uint32_t ranks = settings_.world.ranks;
    return count_ / ranks + (count_ % ranks != 0 ? 1 : 0);
}

bool BucketSampler::in_bucket(SampleIndex sample) const {
    return !waiting_[sample] && !is_removed(sample);
}

bool BucketSampler::is_removed(SampleIndex sample) const {
    return settings_.redundancy == Redundancy::kRemove && groups_.is_copy(sample);
}

void BucketSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    open_epoch(rank, epoch);
    skip_draws(rank, skip);
}

void BucketSampler::resume_epoch(
    std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip, const std::vector<bool>& served) {
    STOKER_CHECK(served.size() == count_, "one flag a sample");
    Reader& reader = open_epoch(rank, epoch);
    reader.resumed.emplace(served, skip, reader.steps_max);
    reader.served = served;
    reader.resumed->count_had(reader.report);
}

BucketSampler::Reader& BucketSampler::open_epoch(std::uint32_t rank, std::uint64_t epoch) {
    turn_buckets(epoch);
    Reader& reader = reader_of(rank);
    const bool regular = epoch < settings_.warmup;
    if (reader.epoch != epoch) {
        reader.order = EpochPermutation(count_, settings_.seed, epoch);
        reader.epoch = epoch;
        reader.full = regular || criteria_.known() == 0;
        const std::uint32_t ranks = settings_.world.ranks;
        reader.steps_max = ranks == 1 || reader.full
                               ? turns()
                               : bucket_count_ / ranks + (bucket_count_ % ranks != 0 ? 1 : 0);
    }
    reader.cursor = {};
    reader.ahead.clear();
    reader.resumed.reset();
    reader.served.assign(count_, false);
    reader.report = {};
    reader.report.epoch = epoch;
    reader.report.exact_fallback = reader.full && !regular;
    return reader;
}

SampleIndex BucketSampler::sample_at(
    const Reader& reader, std::uint32_t rank, std::uint32_t turn) const {
    const std::uint64_t place = std::uint64_t{turn} * settings_.world.ranks + rank;
    return reader.order.at(static_cast<std::uint32_t>(place % count_));
}

// Nothing: the epoch has ended, and what is left of the share is left out.
std::optional<BucketSampler::Step> BucketSampler::next(
    const Reader& reader, std::uint32_t rank) const {
    Cursor& cursor = reader.cursor;
    std::int64_t left_out = 0;
    while (cursor.turn < turns() && cursor.steps < reader.steps_max) {
        const SampleIndex sample = sample_at(reader, rank, cursor.turn++);
        if (reader.full || in_bucket(sample)) {
            ++cursor.steps;
            return Step{sample, left_out};
        }
        ++left_out;
    }
    // A rank whose share holds fewer than others' takes back what waits: they expect it to read.
    while (settings_.world.ranks > 1 && cursor.steps < reader.steps_max &&
           cursor.taken_back < turns()) {
        const SampleIndex sample = sample_at(reader, rank, cursor.taken_back++);
        if (!in_bucket(sample)) {
            ++cursor.steps;
            return Step{sample, left_out - 1};
        }
    }
    return std::nullopt;
}

// In a resumed epoch only the rest of it: see ResumedEpoch.
std::optional<BucketSampler::Step> BucketSampler::next_left(
    const Reader& reader, std::uint32_t rank) const {
    if (!reader.resumed) {
        return next(reader, rank);
    }
    while (!reader.resumed->has_ended()) {
        const auto step = next(reader, rank);
        if (!step) {
            return std::nullopt;
        }
        if (reader.resumed->settle(step->sample, may_get_another(reader, step->sample))) {
            continue;
        }
        if (!reader.resumed->had(step->sample)) {
            reader.resumed->take();
            return step;
        }
        --reader.cursor.steps;  // read before: another step is taken in its place
    }
    return std::nullopt;
}

// One of its group was read.
bool BucketSampler::may_get_another(const Reader& reader, SampleIndex sample) const {
    return settings_.redundancy == Redundancy::kRepeat && !reader.full &&
           std::ranges::any_of(groups_.group_of(sample), [&reader](SampleIndex other) {
               return reader.resumed->had(other);
           });
}

// At least `count` steps, or all that the epoch has left.
void BucketSampler::decide_ahead(
    const Reader& reader, std::uint32_t rank, std::size_t count) const {
    while (reader.ahead.size() < count) {
        const auto step = next_left(reader, rank);
        if (!step) {
            return;
        }
        criteria_.expect(step->sample);
        reader.ahead.push_back(*step);
    }
}

// A member of its group that is on the node, one not read yet if possible; else itself.
SampleIndex BucketSampler::stand_in(const Reader& reader, SampleIndex sample) const {
    if (settings_.redundancy != Redundancy::kRepeat || reader.full || node_.is_stored(sample)) {
        return sample;
    }
    SampleIndex found = sample;
    for (const SampleIndex other : groups_.group_of(sample)) {
        if (node_.is_stored(other)) {
            if (!reader.served[other]) {
                return other;
            }
            found = other;
        }
    }
    return found;
}

void BucketSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    Reader& reader = reader_of(rank);
    EpochReport& report = reader.report;
    for (; count > 0; --count) {
        decide_ahead(reader, rank, 1);
        if (reader.ahead.empty()) {
            report.skipped = turns() - report.requested;
            return;
        }
        const Step step = reader.ahead.front();
        reader.ahead.pop_front();
        Draw draw{step.sample, stand_in(reader, step.sample), Draw::Kind::kPlain};
        report.skipped += static_cast<std::uint64_t>(step.left_out);
        if (draw.served != draw.requested) {
            draw.kind = Draw::Kind::kSubstituted;
        }
        if (reader.served[draw.served]) {
            draw.kind = Draw::Kind::kRepeated;
        }
        report.count(draw);
        reader.served[draw.served] = true;
        draws.push_back(draw);
    }
}

void BucketSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const auto found = readers_.find(rank);
    if (found == readers_.end()) {
        return;
    }
    const Reader& reader = found->second;
    decide_ahead(reader, rank, count);
    for (std::size_t i = 0; i < std::min(count, reader.ahead.size()); ++i) {
        samples.push_back(stand_in(reader, reader.ahead[i].sample));
    }
}

void BucketSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> samples, std::span<const float> losses) {
    const std::uint64_t used = learn(criteria_, samples, losses);
    if (const auto reader = readers_.find(rank); reader != readers_.end()) {
        reader->second.report.count_losses(used, samples.size(), losses.size());
    }
}

void BucketSampler::on_similarity(
    std::span<const SampleIndex> samples, std::span<const std::uint64_t> hashes) {
    const bool is_done = printed_count_ == count_;
    if (settings_.redundancy == Redundancy::kKeep || is_done || samples.size() != hashes.size()) {
        return;
    }
    prints_.resize(count_);
    printed_.resize(count_);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples[i] < count_ && !printed_[samples[i]]) {
            prints_[samples[i]] = hashes[i];
            printed_[samples[i]] = true;
            ++printed_count_;
            has_new_prints_ = true;
        }
    }
}

void BucketSampler::on_quality(double quality) {
    if (is_share(quality)) {
        quality_ = quality;
    }
}

void BucketSampler::on_waiting(double share) {
    if (share >= kWaitsFrom && share <= 1) {
        criteria_.set_bottleneck(Bottleneck::kIo);
    } else if (share >= 0 && share < kWaitsBelow) {
        criteria_.set_bottleneck(Bottleneck::kCompute);
    }
}

EpochReport BucketSampler::report(std::uint32_t rank) const {
    const auto found = readers_.find(rank);
    return found == readers_.end() ? EpochReport{} : found->second.report;
}

std::span<const float> BucketSampler::relative_importance() const {
    return worths_;
}

std::size_t BucketSampler::memory_bytes() const {
    std::size_t bytes = sizeof(*this) + criteria_.memory_bytes();
    bytes += waiting_.capacity() / 8 + worths_.capacity() * sizeof(float);
    bytes += groups_.memory_bytes() + prints_.capacity() * sizeof(Fingerprint);
    for (const auto& [rank, reader] : readers_) {
        bytes += sizeof(reader) + reader.served.capacity() / 8;
    }
    return bytes;
}

}  // namespace stoker::sidecar
