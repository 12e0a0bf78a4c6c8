#include "sidecar/core/sampling/windowed_sampler.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Draws that a trainer may have in its pipeline when it saves its state.
constexpr std::size_t kRecentMax = 16384;

constexpr std::string_view kMagic = "STKWIN1\n";

void put_u64(std::uint64_t value, std::string& text) {
    for (int shift = 0; shift < 64; shift += 8) {
        text.push_back(static_cast<char>((value >> shift) & 0xFFU));
    }
}

// False: the text is too short.
bool take_u64(std::string_view& text, std::uint64_t& value) {
    if (text.size() < 8) {
        return false;
    }
    value = 0;
    for (unsigned byte = 0; byte < 8; ++byte) {
        value |= std::uint64_t{static_cast<unsigned char>(text[byte])} << (8 * byte);
    }
    text.remove_prefix(8);
    return true;
}

void put_bits(const std::vector<bool>& bits, std::string& text) {
    std::string bytes((bits.size() + 7) / 8, '\0');
    for (std::size_t i = 0; i < bits.size(); ++i) {
        if (bits[i]) {
            bytes[i / 8] = static_cast<char>(bytes[i / 8] | (1 << (i % 8)));
        }
    }
    text += bytes;
}

bool take_bits(std::string_view& text, std::vector<bool>& bits) {
    const std::size_t bytes = (bits.size() + 7) / 8;
    if (text.size() < bytes) {
        return false;
    }
    for (std::size_t i = 0; i < bits.size(); ++i) {
        bits[i] = ((static_cast<unsigned char>(text[i / 8]) >> (i % 8)) & 1U) != 0;
    }
    text.remove_prefix(bytes);
    return true;
}

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

void WindowedSampler::on_stored(SampleIndex sample) {
    if (!scan_.is_stored(sample)) {
        scan_.on_stored(sample, false);
    }
}

void WindowedSampler::on_gone(SampleIndex sample) {
    if (scan_.is_stored(sample)) {
        scan_.on_gone(sample);
    }
}

void WindowedSampler::begin_epoch(std::uint32_t rank, std::uint64_t epoch, std::uint64_t skip) {
    Rank& state = at(rank);
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
    std::vector<Draw> forgotten;
    draw(rank, skip, forgotten);
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
    Rank& state = at(rank);
    for (std::size_t i = 0; i < count; ++i) {
        const auto sample = scan_.draw(state.reader, state.prng);
        if (!sample) {
            return;
        }
        const bool repeated = sample == state.padding;
        draws.push_back({*sample, *sample, repeated ? Draw::Kind::kRepeated : Draw::Kind::kPlain});
        ++state.report.requested;
        ++(repeated ? state.report.repeated : state.report.distinct);
        state.recent.push_back(*sample);
        if (state.recent.size() > kRecentMax) {
            state.recent.pop_front();
        }
    }
}

void WindowedSampler::foresee(
    std::uint32_t rank, std::size_t count, std::vector<SampleIndex>& samples) const {
    const SharedScan::Reader reader = at(rank).reader;
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
    at(rank).report.losses_ignored += losses.size();
}

EpochReport WindowedSampler::report(std::uint32_t rank) const {
    return at(rank).report;
}

std::string WindowedSampler::snapshot() const {
    std::string text{kMagic};
    put_u64(shape_.count, text);
    put_u64(shape_.seed, text);
    put_u64(shape_.ranks, text);
    put_u64(ranks_.size(), text);
    for (const Rank& rank : ranks_) {
        write(rank, text);
    }
    return text;
}

void WindowedSampler::write(const Rank& rank, std::string& text) const {
    put_u64(rank.rank, text);
    put_u64(rank.report.epoch, text);
    put_u64(rank.report.requested, text);
    const auto share = shape_.ranks == 1 ? std::vector<SampleIndex>{} : share_of(rank);
    std::vector<bool> read(shape_.ranks == 1 ? shape_.count : share.size());
    for (std::size_t position = 0; position < read.size(); ++position) {
        const auto sample = share.empty() ? static_cast<SampleIndex>(position) : share[position];
        read[position] = rank.report.requested > 0 && !scan_.needs(rank.reader, sample);
    }
    put_bits(read, text);
    put_u64(rank.recent.size(), text);
    for (const SampleIndex sample : rank.recent) {
        put_u64(sample, text);
    }
}

bool WindowedSampler::restore(std::string_view snapshot) {
    if (!snapshot.starts_with(kMagic)) {
        return false;
    }
    snapshot.remove_prefix(kMagic.size());
    std::uint64_t count = 0;
    std::uint64_t seed = 0;
    std::uint64_t world = 0;
    std::uint64_t local = 0;
    if (!take_u64(snapshot, count) || !take_u64(snapshot, seed) || !take_u64(snapshot, world) ||
        !take_u64(snapshot, local) || count != shape_.count || seed != shape_.seed ||
        world != shape_.ranks || local != ranks_.size()) {
        return false;
    }
    const auto parse = [&] {
        return std::ranges::all_of(ranks_, [&](Rank& rank) { return read(snapshot, rank); });
    };
    if (parse() && snapshot.empty()) {
        return true;
    }
    for (Rank& rank : ranks_) {
        rank.resume.reset();
    }
    return false;
}

bool WindowedSampler::read(std::string_view& text, Rank& rank) const {
    std::uint64_t number = 0;
    std::uint64_t drawn = 0;
    Resume resume;
    if (!take_u64(text, number) || number != rank.rank || !take_u64(text, resume.epoch) ||
        !take_u64(text, resume.position)) {
        return false;
    }
    resume.read.resize(shape_.ranks == 1 ? shape_.count : rank_length(shape_));
    if (!take_bits(text, resume.read) || !take_u64(text, drawn) || drawn > kRecentMax) {
        return false;
    }
    for (; drawn > 0; --drawn) {
        std::uint64_t sample = 0;
        if (!take_u64(text, sample) || sample >= shape_.count) {
            return false;
        }
        resume.recent.push_back(static_cast<SampleIndex>(sample));
    }
    rank.resume = std::move(resume);
    return true;
}

const WindowedSampler::Rank& WindowedSampler::at(std::uint32_t rank) const {
    const auto found = std::ranges::find(ranks_, rank, &Rank::rank);
    STOKER_CHECK(found != ranks_.end(), "only local ranks draw");
    return *found;
}

WindowedSampler::Rank& WindowedSampler::at(std::uint32_t rank) {
    return const_cast<Rank&>(std::as_const(*this).at(rank));
}

}  // namespace stoker::sidecar
