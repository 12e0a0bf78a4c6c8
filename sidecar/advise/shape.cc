#include "sidecar/advise/shape.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace stoker::advise {

namespace {

// Shares of the reads that decide on the pattern. Ranks drift apart by some batches and pad the
// last one, so a few reads are out of place even if every epoch reads each sample once.
constexpr double kEachOnceFrom = 0.95;
constexpr double kOnePassUpTo = 0.05;
constexpr double kSameOrderBelow = 0.05;  // mean distance of a sample's positions / pass length
constexpr double kSkewedAbove = 1.5;      // variance of the reads per sample / their mean

using Sequence = std::vector<SampleIndex>;

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Share of the reads that read a sample for the first time in a pass.
double fresh_share(
    const Sequence& reads,
    std::size_t samples,
    const std::function<std::uint32_t(std::size_t position)>& pass_of) {
    std::vector<std::uint32_t> last(samples, kNoEpoch);
    std::uint64_t fresh = 0;
    for (std::size_t i = 0; i < reads.size(); ++i) {
        const std::uint32_t pass = pass_of(i);
        fresh += last[reads[i]] != pass ? 1 : 0;
        last[reads[i]] = pass;
    }
    return share(fresh, reads.size());
}

// Number of reads per pass, if the sequence consists of passes that read each sample once; else 0.
double pass_length(const Sequence& reads, std::size_t samples) {
    std::vector<bool> seen(samples);
    double distinct = 0;
    for (const SampleIndex sample : reads) {
        distinct += seen[sample] ? 0 : 1;
        seen[sample] = true;
    }
    const auto count = static_cast<double>(reads.size());
    // Two candidates: equal passes (with drop_last), or full passes, the last incomplete.
    for (const double length : {count / std::max(std::round(count / distinct), 1.0), distinct}) {
        const auto pass_of = [length](std::size_t i) {
            return static_cast<std::uint32_t>(static_cast<double>(i) / length);
        };
        if (fresh_share(reads, samples, pass_of) >= kEachOnceFrom) {
            return length;
        }
    }
    return 0;
}

Sequence sequence_of(const Trace& trace) {
    Sequence sequence;
    sequence.reserve(trace.reads.size());
    for (const Read& read : trace.reads) {
        sequence.push_back(read.sample);
    }
    return sequence;
}

// Assigns each reader's reads to a sequence. A reader with hardly any reads, such as a health check
// in an access log, is not a rank: its reads belong to the first sequence.
struct Folding {
    std::vector<std::uint32_t> place;  // by reader: number of its sequence
    std::uint32_t count = 0;           // number of sequences; at least 1
};

Folding fold(const Trace& trace, std::uint32_t most) {
    constexpr std::uint64_t kStrayBelow = 100;  // below 1/100 of the busiest reader's reads
    std::vector<std::uint64_t> reads(trace.readers);
    std::uint64_t busiest = 0;
    for (const Read& read : trace.reads) {
        busiest = std::max(busiest, ++reads[read.reader]);
    }
    Folding result{std::vector<std::uint32_t>(trace.readers), 0};
    for (std::uint32_t reader = 0; reader < trace.readers; ++reader) {
        if (reads[reader] * kStrayBelow >= busiest) {
            result.place[reader] = result.count++ % most;
        }
    }
    result.count = std::min(result.count, most);
    return result;
}

std::vector<Sequence> sequences_of(const Trace& trace) {
    const Folding folding = fold(trace, trace.readers);
    std::vector<Sequence> sequences(folding.count);
    for (const Read& read : trace.reads) {
        sequences[folding.place[read.reader]].push_back(read.sample);
    }
    return sequences;
}

// Whether later passes have the first one's order, apart from reordering by workers.
bool repeats_order(const Sequence& reads, std::size_t samples, double length) {
    std::vector<double> place(samples, -1);
    double distance = 0;
    std::uint64_t compared = 0;
    for (std::size_t i = 0; i < reads.size(); ++i) {
        const double here = std::fmod(static_cast<double>(i), length) / length;
        double& there = place[reads[i]];
        if (there >= 0) {
            distance += std::abs(here - there);
            ++compared;
        }
        there = here;
    }
    return compared > 0 && distance / static_cast<double>(compared) < kSameOrderBelow;
}

std::vector<std::uint32_t> counts_of(const Trace& trace) {
    std::vector<std::uint32_t> counts(trace.sizes.size());
    for (const Read& read : trace.reads) {
        ++counts[read.sample];
    }
    return counts;
}

// Variance of the reads per sample / their mean: about 1 for uniform random draws.
double dispersion(const std::vector<std::uint32_t>& counts, std::uint64_t reads) {
    const double mean = share(reads, counts.size());
    double squares = 0;
    for (const std::uint32_t count : counts) {
        squares += (count - mean) * (count - mean);
    }
    return squares / static_cast<double>(counts.size()) / mean;
}

double hottest_share(std::vector<std::uint32_t> counts, std::uint64_t reads) {
    const auto tenth = static_cast<std::ptrdiff_t>((counts.size() + 9) / 10);
    std::ranges::nth_element(counts, counts.begin() + tenth - 1, std::greater{});
    return share(std::accumulate(counts.begin(), counts.begin() + tenth, std::uint64_t{0}), reads);
}

// Number of different recorded epochs.
double recorded_epochs(const Trace& trace) {
    std::vector<std::uint32_t> epochs;
    for (const Read& read : trace.reads) {
        if (epochs.empty() || epochs.back() != read.epoch) {
            epochs.push_back(read.epoch);
        }
    }
    std::ranges::sort(epochs);
    return static_cast<double>(std::ranges::unique(epochs).begin() - epochs.begin());
}

// Finds passes in the trace; fills in pattern and epochs.
void find_passes(const Trace& trace, Shape& shape) {
    const Sequence all = sequence_of(trace);
    const std::size_t samples = trace.sizes.size();
    double length = pass_length(all, samples);
    const bool epochs_fresh =
        trace.has_epochs && fresh_share(all, samples, [&trace](std::size_t i) {
                                return trace.reads[i].epoch;
                            }) >= kEachOnceFrom;
    if (length == 0 && epochs_fresh) {
        length = static_cast<double>(all.size()) / recorded_epochs(trace);
    }
    if (length > 0) {
        shape.pattern = Pattern::kEachOnce;
        shape.epochs = static_cast<double>(all.size()) / length;
        shape.same_order = repeats_order(all, samples, length);
        return;
    }
    const std::vector<Sequence> sequences = sequences_of(trace);
    if (sequences.size() < 2) {
        return;
    }
    double passes = 0;
    for (const Sequence& sequence : sequences) {
        const double own = pass_length(sequence, samples);
        // A reader of only a part of the samples makes no passes over all of them.
        if (own < kEachOnceFrom * static_cast<double>(samples)) {
            return;
        }
        passes = std::max(passes, static_cast<double>(sequence.size()) / own);
    }
    shape.pattern = Pattern::kEachOnce;
    shape.each_reads_all = true;
    shape.epochs = passes;
    shape.same_order =
        repeats_order(sequences[0], samples, static_cast<double>(sequences[0].size()) / passes);
}

}  // namespace

Shape describe(const Trace& trace) {
    Shape shape;
    shape.samples = trace.sizes.size();
    shape.reads = trace.reads.size();
    shape.readers = trace.readers;
    shape.seconds = trace.reads.back().seconds - trace.reads.front().seconds;
    for (const std::uint64_t size : trace.sizes) {
        shape.dataset_bytes += Bytes{size};
    }
    for (const Read& read : trace.reads) {
        shape.read_bytes += Bytes{trace.sizes[read.sample]};
    }
    const std::vector<std::uint32_t> counts = counts_of(trace);
    shape.hottest_share = hottest_share(counts, shape.reads);
    if (share(shape.reads - shape.samples, shape.reads) <= kOnePassUpTo) {
        return shape;
    }
    shape.pattern = dispersion(counts, shape.reads) > kSkewedAbove ? Pattern::kSkewed
                                                                   : Pattern::kWithReplacement;
    shape.epochs = trace.has_epochs ? recorded_epochs(trace) : share(shape.reads, shape.samples);
    find_passes(trace, shape);
    return shape;
}

std::vector<std::vector<Sequence>> by_reader(
    const Trace& trace, const Shape& shape, std::uint32_t most) {
    const Folding folding = fold(trace, most);
    const std::uint32_t readers = folding.count;
    std::vector<Sequence> sequences(readers);
    std::vector<std::vector<std::uint32_t>> recorded(readers);
    std::uint32_t first = kNoEpoch;
    std::uint32_t last = 0;
    for (const Read& read : trace.reads) {
        sequences[folding.place[read.reader]].push_back(read.sample);
        if (trace.has_epochs) {
            recorded[folding.place[read.reader]].push_back(read.epoch);
            first = std::min(first, read.epoch);
            last = std::max(last, read.epoch);
        }
    }
    constexpr std::uint32_t kEpochsMax = 10'000;
    const bool is_recorded = trace.has_epochs && last - first < kEpochsMax;
    const bool has_passes = shape.pattern == Pattern::kEachOnce;
    const auto passes = static_cast<std::size_t>(
        std::clamp(std::ceil(shape.epochs - 0.01), 1.0, double{kEpochsMax}));
    const std::size_t epochs = is_recorded ? last - first + 1 : has_passes ? passes : 1;
    std::vector<std::vector<Sequence>> result(readers, std::vector<Sequence>(epochs));
    for (std::uint32_t reader = 0; reader < readers; ++reader) {
        const Sequence& sequence = sequences[reader];
        const double length = static_cast<double>(sequence.size()) / shape.epochs;
        for (std::size_t i = 0; i < sequence.size(); ++i) {
            const auto pass = static_cast<std::size_t>(static_cast<double>(i) / length);
            const std::size_t epoch = is_recorded  ? recorded[reader][i] - first
                                      : has_passes ? std::min(pass, epochs - 1)
                                                   : 0;
            result[reader][epoch].push_back(sequence[i]);
        }
    }
    return result;
}

}  // namespace stoker::advise
