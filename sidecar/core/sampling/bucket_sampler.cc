#include "sidecar/core/sampling/bucket_sampler.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kVersion = 0x34574F49;  // "IOW4"

}  // namespace

Result<std::unique_ptr<BucketSampler>> BucketSampler::create(
    const Residency& node,
    std::uint32_t count,
    const SamplerSettings& settings,
    BucketOptions options) {
    STOKER_TRY_VOID(settings.check(count));
    return std::unique_ptr<BucketSampler>(
        new BucketSampler(node, count, settings, std::move(options)));
}

BucketSampler::BucketSampler(
    const Residency& node,
    std::uint32_t count,
    const SamplerSettings& settings,
    BucketOptions options)
    : node_(node),
      count_(count),
      settings_(settings),
      buckets_(count, settings, std::move(options)) {}

void BucketSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    restart(open_epoch(rank, epoch));
    skip_draws(rank, skip);
}

void BucketSampler::resume_epoch(
    std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip, const std::vector<bool>& served) {
    STOKER_CHECK(served.size() == count_, "`served` must have one flag per sample");
    Reader& reader = open_epoch(rank, epoch);
    restart(reader, ResumedEpoch{served, skip, reader.walk.steps_max()});
}

BucketSampler::Reader& BucketSampler::open_epoch(std::uint32_t rank, std::uint64_t epoch) {
    STOKER_CHECK(rank < settings_.ranks, "the rank must be below the number of ranks");
    buckets_.begin_epoch(epoch);
    Reader& reader =
        readers_.try_emplace(rank, ShareWalk{count_, settings_.seed, settings_.ranks, rank})
            .first->second;
    if (std::exchange(reader.begun, true) && reader.walk.epoch() == epoch) {
        reader.walk.rewind();
        return reader;
    }
    reader.reads = buckets_.reads();
    reader.full = buckets_.is_regular(epoch) || buckets_.criteria().known() == 0;
    reader.walk.begin(epoch, settings_.draws_of_epoch(epoch, reader.walk.turns()));
    return reader;
}

void BucketSampler::restart(Reader& reader, std::optional<ResumedEpoch> rest) const {
    const std::uint64_t epoch = reader.walk.epoch();
    reader.begin(count_, epoch, std::move(rest));
    reader.report.exact_fallback = reader.full && !buckets_.is_regular(epoch);
    reader.ahead.clear();
}

std::optional<ShareWalk::Step> BucketSampler::next(Reader& reader) const {
    const auto keeps = [&reader](std::uint32_t /*turn*/, SampleIndex sample) {
        return reader.full || (*reader.reads)[sample];
    };
    const auto may_get_another = [this, &reader](const ShareWalk::Step& step) {
        return !reader.full && std::ranges::any_of(
                                   buckets_.alike(step.sample),
                                   [&reader](SampleIndex other) { return reader.had(other); });
    };
    for (;;) {
        const auto step = reader.next_left(
            [&] { return reader.walk.next(buckets_.criteria(), keeps); }, may_get_another);
        if (!step || !reader.resumed) {
            return step;
        }
        if (!reader.had(step->sample)) {
            reader.resumed->take();
            return step;
        }
        reader.walk.give_back();  // another step is taken instead
        reader.leave_out(step->left_out);
    }
}

// Decides the rank's next samples, until `count` of them are decided but not drawn or the epoch
// ends.
void BucketSampler::decide_ahead(Reader& reader, std::size_t count) const {
    while (reader.ahead.size() < count) {
        const auto step = next(reader);
        if (!step) {
            return;
        }
        reader.ahead.push_back(*step);
    }
}

// A stored member of the sample's redundancy group, an unread one if possible; otherwise the sample
// itself.
SampleIndex BucketSampler::stand_in(const Reader& reader, SampleIndex sample) const {
    if (reader.full || node_.is_stored(sample)) {
        return sample;
    }
    SampleIndex found = sample;
    for (const SampleIndex other : buckets_.alike(sample)) {
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
    Reader& reader = readers_.at(rank);
    for (; count > 0; --count) {
        decide_ahead(reader, 1);
        if (reader.ahead.empty()) {
            reader.end(reader.walk.turns());
            return;
        }
        const ShareWalk::Step step = reader.ahead.front();
        reader.ahead.pop_front();
        Draw draw{step.sample, stand_in(reader, step.sample), Draw::Kind::kPlain};
        if (draw.served != draw.requested) {
            draw.kind = Draw::Kind::kSubstituted;
        }
        reader.leave_out(step.left_out);
        reader.count(draw);
        draws.push_back(draw);
    }
}

void BucketSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const auto found = readers_.find(rank);
    if (found == readers_.end()) {
        return;
    }
    Reader& reader = found->second;
    decide_ahead(reader, count);
    for (std::size_t i = 0; i < std::min(count, reader.ahead.size()); ++i) {
        samples.push_back(stand_in(reader, reader.ahead[i].sample));
    }
}

void BucketSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> samples, std::span<const float> losses) {
    const std::uint64_t used = learn(buckets_.criteria(), samples, losses);
    if (const auto reader = readers_.find(rank); reader != readers_.end()) {
        reader->second.report.count_losses(used, samples.size(), losses.size());
    }
}

void BucketSampler::on_p_others(
    std::span<const SampleIndex> samples, std::span<const float> p_others) {
    if (samples.size() == p_others.size()) {
        for (std::size_t i = 0; i < samples.size(); ++i) {
            buckets_.criteria().record_other(samples[i], p_others[i]);
        }
    }
}

EpochReport BucketSampler::report(std::uint32_t rank) const {
    const auto found = readers_.find(rank);
    return found == readers_.end() ? EpochReport{} : found->second.report;
}

// Little-endian; version first.
std::string BucketSampler::snapshot() const {
    WireWriter wire;
    wire.put(kVersion).put(count_).put(settings_.ranks).put(settings_.seed);
    buckets_.write(wire);
    return wire.text();
}

bool BucketSampler::restore(std::string_view snapshot) {
    WireReader wire(std::as_bytes(std::span{snapshot}));
    const bool known = wire.get<std::uint32_t>() == kVersion && wire.get<std::uint32_t>() == count_;
    wire.get<std::uint32_t>();  // not used: the buckets are the same for any number of ranks
    return known && wire.get<std::uint64_t>() == settings_.seed && buckets_.read(wire);
}

}  // namespace stoker::sidecar
