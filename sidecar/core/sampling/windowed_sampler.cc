#include "sidecar/core/sampling/windowed_sampler.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace stoker::sidecar {

namespace {

// Draws that a trainer may have in its pipeline when it saves its state.
constexpr std::size_t kRecentMax = 16384;

constexpr std::uint64_t kMagic = 0x0A314E49574B5453;  // "STKWIN1\n"

}  // namespace

Result<std::unique_ptr<WindowedSampler>> WindowedSampler::make(
    SharedScan& scan, const EpochShape& shape, const World& world) {
    if (shape.count == 0 || shape.count != scan.sample_count() || shape.ranks != world.ranks) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "an epoch of {} samples over {} ranks on a scan of {} samples for {} ranks",
                shape.count,
                shape.ranks,
                scan.sample_count(),
                world.ranks));
    }
    // Not make_unique: the constructor is private.
    std::unique_ptr<WindowedSampler> sampler{new WindowedSampler{scan, shape}};
    for (const std::uint32_t local : world.local_ranks) {
        if (local >= world.ranks) {
            return fail(
                ErrorCode::kInvalidArgument,
                fmt::format("rank {} is outside a world of {}", local, world.ranks));
        }
        const auto reader = scan.join();
        if (!reader) {
            return fail(
                ErrorCode::kResourceExhausted,
                fmt::format("{} readers share this dataset already", scan.reader_count()));
        }
        Rank& rank = sampler->ranks_.emplace_back();
        rank.rank = local;
        rank.reader = *reader;
    }
    return sampler;
}

WindowedSampler::WindowedSampler(SharedScan& scan, const EpochShape& shape)
    : scan_(scan),
      shape_(shape) {}

WindowedSampler::~WindowedSampler() {
    for (const Rank& rank : ranks_) {
        scan_.leave(rank.reader);
    }
}

void WindowedSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    Rank& state = local_rank(ranks_, rank);
    state.prng = Prng{Prng{Prng{shape_.seed}() + epoch}() + rank};
    state.report = EpochReport{.epoch = epoch};
    state.padding.reset();
    state.recent.clear();
    if (shape_.ranks == 1) {
        scan_.begin(state.reader);
    } else {
        const auto share = share_of(state);
        scan_.begin(state.reader, share);
        if (!share.empty() && is_padding(shape_, rank, share.size() - 1)) {
            state.padding = share.back();
        }
        if (rank == 0 && shape_.tail == Tail::kDrop) {
            state.report.skipped = shape_.count % shape_.ranks;
        }
    }
    const auto resume = std::exchange(state.resume, std::nullopt);
    if (resume && resume->epoch == epoch) {
        go_on(state, *resume, skip);
        return;
    }
    skip_draws(rank, skip);
}

std::vector<SampleIndex> WindowedSampler::share_of(const Rank& rank) const {
    return epoch_order(shape_, rank.report.epoch, rank.rank);
}

// Draws after the first `skip` were prefetched but not trained on: they come again.
void WindowedSampler::go_on(Rank& rank, const Resume& resume, std::uint64_t skip) {
    const std::uint64_t untrained = std::min<std::uint64_t>(
        resume.position - std::min(skip, resume.position), resume.recent.size());
    const auto first = resume.recent.end() - static_cast<std::ptrdiff_t>(untrained);
    std::vector<SampleIndex> again(first, resume.recent.end());
    std::ranges::sort(again);
    const auto count_read = [&](SampleIndex sample) {
        if (std::ranges::binary_search(again, sample)) {
            return;
        }
        scan_.mark_read(rank.reader, sample);
        ++rank.report.requested;
        ++(sample == rank.padding ? rank.report.repeated : rank.report.distinct);
    };
    const auto share = shape_.ranks == 1 ? std::vector<SampleIndex>{} : share_of(rank);
    for (std::size_t position = 0; position < resume.read.size(); ++position) {
        if (resume.read[position]) {
            count_read(share.empty() ? static_cast<SampleIndex>(position) : share[position]);
        }
    }
    rank.recent.assign(resume.recent.begin(), first);
}

void WindowedSampler::draw(std::uint32_t rank, std::size_t count, std::vector<Draw>& draws) {
    Rank& state = local_rank(ranks_, rank);
    for (std::size_t i = 0; i < count; ++i) {
        const auto sample = scan_.draw(state.reader, state.prng);
        if (!sample) {
            return;
        }
        const bool repeated = sample == state.padding;
        draws.push_back({*sample, *sample, repeated ? Draw::Kind::kRepeated : Draw::Kind::kPlain});
        state.report.count(draws.back());
        state.recent.push_back(*sample);
        if (state.recent.size() > kRecentMax) {
            state.recent.pop_front();
        }
    }
}

void WindowedSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const SharedScan::Reader reader = local_rank(ranks_, rank).reader;
    for (const SampleIndex sample : scan_.feed()) {
        if (count == 0) {
            return;
        }
        if (scan_.needs(reader, sample)) {
            samples.push_back(sample);
            --count;
        }
    }
}

void WindowedSampler::on_losses(
    std::uint32_t rank, std::span<const SampleIndex> /*samples*/, std::span<const float> losses) {
    local_rank(ranks_, rank).report.losses_ignored += losses.size();
}

EpochReport WindowedSampler::report(std::uint32_t rank) const {
    return local_rank(ranks_, rank).report;
}

std::string WindowedSampler::snapshot() const {
    WireWriter wire;
    wire.put(kMagic).put(std::uint64_t{shape_.count}).put(shape_.seed);
    wire.put(std::uint64_t{shape_.ranks}).put(std::uint64_t{ranks_.size()});
    for (const Rank& rank : ranks_) {
        write(rank, wire);
    }
    return wire.text();
}

void WindowedSampler::write(const Rank& rank, WireWriter& wire) const {
    wire.put(std::uint64_t{rank.rank}).put(rank.report.epoch).put(rank.report.requested);
    const auto share = shape_.ranks == 1 ? std::vector<SampleIndex>{} : share_of(rank);
    std::vector<bool> read(shape_.ranks == 1 ? shape_.count : share.size());
    for (std::size_t position = 0; position < read.size(); ++position) {
        const auto sample = share.empty() ? static_cast<SampleIndex>(position) : share[position];
        read[position] = rank.report.requested > 0 && !scan_.needs(rank.reader, sample);
    }
    wire.put_bits(read, read.size()).put(std::uint64_t{rank.recent.size()});
    for (const SampleIndex sample : rank.recent) {
        wire.put(std::uint64_t{sample});
    }
}

bool WindowedSampler::restore(std::string_view snapshot) {
    WireReader wire{std::as_bytes(std::span{snapshot})};
    const auto is_next = [&wire](std::uint64_t number) {
        return wire.get<std::uint64_t>() == number && wire.ok();
    };
    if (!is_next(kMagic) || !is_next(shape_.count) || !is_next(shape_.seed) ||
        !is_next(shape_.ranks) || !is_next(ranks_.size())) {
        return false;
    }
    const auto parse = [&](Rank& rank) { return is_next(rank.rank) && read(wire, rank); };
    if (std::ranges::all_of(ranks_, parse) && wire.left() == 0) {
        return true;
    }
    for (Rank& rank : ranks_) {
        rank.resume.reset();
    }
    return false;
}

bool WindowedSampler::read(WireReader& wire, Rank& rank) const {
    Resume resume;
    resume.epoch = wire.get<std::uint64_t>();
    resume.position = wire.get<std::uint64_t>();
    resume.read = wire.get_bits(shape_.ranks == 1 ? shape_.count : rank_length(shape_));
    const auto drawn = wire.get<std::uint64_t>();
    for (std::uint64_t i = 0; i < drawn && wire.ok() && drawn <= kRecentMax; ++i) {
        const auto sample = wire.get<std::uint64_t>();
        if (sample >= shape_.count) {
            return false;
        }
        resume.recent.push_back(static_cast<SampleIndex>(sample));
    }
    rank.resume = std::move(resume);
    return wire.ok() && drawn <= kRecentMax;
}

}  // namespace stoker::sidecar
