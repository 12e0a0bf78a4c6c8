#include "sidecar/core/sampling/windowed_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/core.h>

namespace stoker::sidecar {

namespace {

// Maximum number of draws that a trainer's pipeline can hold when it saves its state.
constexpr std::size_t kRecentMax = 16384;

constexpr std::uint64_t kMagic = 0x0A314E49574B5453;  // "STKWIN1\n"

}  // namespace

Result<std::unique_ptr<WindowedSampler>> WindowedSampler::make(
    SharedScan& scan, const EpochShape& shape, std::uint32_t rank) {
    if (shape.count == 0 || shape.count != scan.sample_count() || rank >= shape.ranks) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "invalid rank {} of {}, or epoch of {} samples on a scan of {}",
                rank,
                shape.ranks,
                shape.count,
                scan.sample_count()));
    }
    const auto reader = scan.join();
    if (!reader) {
        return fail(
            ErrorCode::kResourceExhausted,
            fmt::format("{} readers share this dataset already", scan.reader_count()));
    }
    // make_unique cannot call the private constructor.
    return std::unique_ptr<WindowedSampler>{new WindowedSampler{scan, shape, rank, *reader}};
}

WindowedSampler::WindowedSampler(
    SharedScan& scan, const EpochShape& shape, std::uint32_t rank, SharedScan::Reader reader)
    : scan_(scan),
      shape_(shape),
      rank_(rank),
      reader_(reader) {}

WindowedSampler::~WindowedSampler() {
    scan_.leave(reader_);
}

void WindowedSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    prng_ = Prng{Prng{Prng{shape_.seed}() + epoch}() + rank_};
    report_ = EpochReport{.epoch = epoch};
    padding_.reset();
    recent_.clear();
    if (shape_.ranks == 1) {
        scan_.begin(reader_);
    } else {
        const auto samples = share();
        scan_.begin(reader_, samples);
        if (!samples.empty() && is_padding(shape_, rank_, samples.size() - 1)) {
            padding_ = samples.back();
        }
        if (rank_ == 0 && shape_.tail == Tail::kDrop) {
            report_.skipped = shape_.count % shape_.ranks;
        }
    }
    const auto resume = std::exchange(resume_, std::nullopt);
    if (resume && resume->epoch == epoch) {
        go_on(*resume, skip);
        return;
    }
    skip_draws(rank, skip);
}

// The samples that the rank reads in its epoch; for a single rank all samples, in order of id.
std::vector<SampleIndex> WindowedSampler::share() const {
    if (shape_.ranks > 1) {
        return epoch_order(shape_, report_.epoch, rank_);
    }
    std::vector<SampleIndex> samples(shape_.count);
    std::iota(samples.begin(), samples.end(), SampleIndex{0});
    return samples;
}

// Draws after the first `skip` are drawn again: they were prefetched but not trained on.
void WindowedSampler::go_on(const Resume& resume, std::uint64_t skip) {
    const std::uint64_t untrained = std::min<std::uint64_t>(
        resume.position - std::min(skip, resume.position), resume.recent.size());
    const auto first = resume.recent.end() - static_cast<std::ptrdiff_t>(untrained);
    std::vector<SampleIndex> again(first, resume.recent.end());
    std::ranges::sort(again);
    const auto samples = share();
    for (std::size_t position = 0; position < resume.read.size(); ++position) {
        const SampleIndex sample = samples[position];
        if (resume.read[position] && !std::ranges::binary_search(again, sample)) {
            scan_.mark_read(reader_, sample);
            ++report_.requested;
            ++(sample == padding_ ? report_.repeated : report_.distinct);
        }
    }
    recent_.assign(resume.recent.begin(), first);
}

void WindowedSampler::draw(std::uint32_t /*rank*/, std::size_t count, std::vector<Draw>& draws) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto sample = scan_.draw(reader_, prng_);
        if (!sample) {
            return;
        }
        const bool repeated = sample == padding_;
        draws.push_back({*sample, *sample, repeated ? Draw::Kind::kRepeated : Draw::Kind::kPlain});
        report_.count(draws.back());
        recent_.push_back(*sample);
        if (recent_.size() > kRecentMax) {
            recent_.pop_front();
        }
    }
}

void WindowedSampler::foresee(
    std::uint32_t /*rank*/, std::size_t count, std::vector<SampleIndex>& samples) const {
    for (const SampleIndex sample : scan_.feed()) {
        if (count == 0) {
            return;
        }
        if (scan_.needs(reader_, sample)) {
            samples.push_back(sample);
            --count;
        }
    }
}

void WindowedSampler::on_losses(
    std::uint32_t /*rank*/,
    std::span<const SampleIndex> /*samples*/,
    std::span<const float> losses) {
    report_.losses_ignored += losses.size();
}

EpochReport WindowedSampler::report(std::uint32_t /*rank*/) const {
    return report_;
}

// The format has a count of ranks, because samplers of earlier versions served several.
std::string WindowedSampler::snapshot() const {
    WireWriter wire;
    wire.put(kMagic).put(std::uint64_t{shape_.count}).put(shape_.seed);
    wire.put(std::uint64_t{shape_.ranks}).put(std::uint64_t{1});
    wire.put(std::uint64_t{rank_}).put(report_.epoch).put(report_.requested);
    std::vector<bool> read;
    for (const SampleIndex sample : share()) {
        read.push_back(report_.requested > 0 && !scan_.needs(reader_, sample));
    }
    wire.put_bits(read, read.size()).put(std::uint64_t{recent_.size()});
    for (const SampleIndex sample : recent_) {
        wire.put(std::uint64_t{sample});
    }
    return wire.text();
}

bool WindowedSampler::restore(std::string_view snapshot) {
    WireReader wire{std::as_bytes(std::span{snapshot})};
    for (const std::uint64_t number :
         {kMagic,
          std::uint64_t{shape_.count},
          shape_.seed,
          std::uint64_t{shape_.ranks},
          std::uint64_t{1},
          std::uint64_t{rank_}}) {
        if (wire.get<std::uint64_t>() != number || !wire.ok()) {
            return false;
        }
    }
    Resume resume;
    resume.epoch = wire.get<std::uint64_t>();
    resume.position = wire.get<std::uint64_t>();
    resume.read = wire.get_bits(rank_length(shape_));
    const auto drawn = wire.get<std::uint64_t>();
    if (drawn > kRecentMax) {
        return false;
    }
    for (std::uint64_t i = 0; i < drawn && wire.ok(); ++i) {
        const auto sample = wire.get<std::uint64_t>();
        if (sample >= shape_.count) {
            return false;
        }
        resume.recent.push_back(static_cast<SampleIndex>(sample));
    }
    if (!wire.ok() || wire.left() != 0) {
        return false;
    }
    resume_ = std::move(resume);
    return true;
}

}  // namespace stoker::sidecar
