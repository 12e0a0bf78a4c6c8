#include "sidecar/core/sampling/clairvoyant_accesses.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::sidecar {

namespace {

// P(X = k) for k = 0..trials, X ~ Binomial(trials, p). Uses logarithms, because 0.5^1000 is tiny.
std::vector<double> binomial(std::uint64_t trials, double p) {
    std::vector<double> mass(trials + 1);
    const auto n = static_cast<double>(trials);
    for (std::uint64_t k = 0; k <= trials; ++k) {
        const auto x = static_cast<double>(k);
        const double choose = std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1);
        const double failures = k == trials ? 0.0 : (n - x) * std::log1p(-p);
        mass[k] = std::exp(choose + x * std::log(p) + failures);
    }
    return mass;
}

}  // namespace

AccessCounts::AccessCounts(const EpochShape& shape, std::uint64_t epochs)
    : readers_(shape.ranks),
      samples_(shape.count),
      counts_(std::size_t{shape.ranks} * shape.count) {
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        for_each_read(shape, epoch, [this](auto rank, SampleIndex sample, auto /*position*/) {
            count(rank, sample);
        });
    }
}

AccessCounts::AccessCounts(
    const EpochShape& shape,
    std::uint64_t epochs,
    std::span<const std::uint32_t> reader_of,
    std::uint32_t readers,
    SampleIndex first,
    std::uint32_t samples)
    : readers_(readers),
      samples_(samples),
      counts_(std::size_t{readers} * samples) {
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        for_each_read(shape, epoch, [&](auto rank, SampleIndex sample, auto /*position*/) {
            if (sample >= first && sample - first < samples) {
                count(reader_of[rank], sample - first);
            }
        });
    }
}

void AccessCounts::count(std::uint32_t reader, SampleIndex sample) {
    auto& reads = counts_[std::size_t{reader} * samples_ + sample];
    if (reads < std::numeric_limits<std::uint16_t>::max()) {
        ++reads;
    }
}

std::vector<std::vector<std::uint64_t>> first_uses(const EpochShape& shape, std::uint64_t epochs) {
    std::vector<std::vector<std::uint64_t>> uses(
        shape.ranks, std::vector<std::uint64_t>(shape.count, kNeverRead));
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
        const std::uint64_t first = epoch * rank_length(shape);
        for_each_read(shape, epoch, [&](auto rank, SampleIndex sample, std::uint64_t position) {
            uses[rank][sample] = std::min(uses[rank][sample], first + position);
        });
    }
    return uses;
}

TierPlacement place_own(
    const AccessCounts& counts,
    std::uint32_t rank,
    std::span<const std::uint64_t> first_use,
    std::span<const Bytes> sizes,
    std::span<const Bytes> capacities) {
    std::vector<SampleIndex> wanted;
    for (SampleIndex sample = 0; sample < counts.samples(); ++sample) {
        if (counts.at(rank, sample) > 0) {
            wanted.push_back(sample);
        }
    }
    std::ranges::sort(wanted, [&](SampleIndex a, SampleIndex b) {
        const auto count_a = counts.at(rank, a);
        const auto count_b = counts.at(rank, b);
        return count_a != count_b ? count_a > count_b
                                  : std::pair{first_use[a], a} < std::pair{first_use[b], b};
    });
    TierPlacement placement;
    auto next = wanted.begin();
    for (const Bytes capacity : capacities) {
        auto& tier = placement.tiers.emplace_back();
        Bytes used;
        for (; next != wanted.end() && used + sizes[*next] <= capacity; ++next) {
            used += sizes[*next];
            tier.push_back(*next);
        }
        std::ranges::sort(tier, {}, [&](SampleIndex sample) { return first_use[sample]; });
    }
    return placement;
}

std::vector<std::uint32_t> place_pooled(const AccessCounts& counts, std::uint32_t capacity) {
    const std::uint32_t readers = counts.readers();
    const auto most = [&](SampleIndex sample) {
        std::uint16_t count = 0;
        for (std::uint32_t reader = 0; reader < readers; ++reader) {
            count = std::max(count, counts.at(reader, sample));
        }
        return count;
    };
    std::vector<std::uint16_t> highest(counts.samples());
    std::vector<SampleIndex> order(counts.samples());
    for (SampleIndex sample = 0; sample < counts.samples(); ++sample) {
        highest[sample] = most(sample);
        order[sample] = sample;
    }
    // Samples in descending order of their best reader's count.
    std::ranges::stable_sort(
        order, std::greater{}, [&](SampleIndex sample) { return highest[sample]; });
    std::vector<std::uint32_t> room(readers, capacity);
    std::vector<std::uint32_t> owners(counts.samples(), kNoOwner);
    for (const SampleIndex sample : order) {
        std::uint32_t best = kNoOwner;
        for (std::uint32_t reader = 0; reader < readers; ++reader) {
            if (room[reader] == 0) {
                continue;
            }
            const auto value = [&](std::uint32_t one) {
                return std::pair{counts.at(one, sample), room[one]};
            };
            if (best == kNoOwner || value(reader) > value(best)) {
                best = reader;
            }
        }
        if (best != kNoOwner) {
            owners[sample] = best;
            --room[best];
        }
    }
    return owners;
}

std::vector<std::uint16_t> owners_by_reads(
    const EpochShape& shape,
    std::uint64_t epochs,
    std::span<const std::uint32_t> member_of,
    std::uint16_t members) {
    constexpr std::size_t kCountsMax = std::size_t{128} << 20U;
    const std::uint64_t counted = std::min<std::uint64_t>(epochs, kPlacedEpochsMax);
    // A multiple of the members, so that the parts of all blocks add up to the part of the whole.
    const auto block = static_cast<std::uint32_t>(
        std::min<std::size_t>(kCountsMax / members / members * members, UINT32_MAX));
    std::vector<std::uint16_t> owners;
    owners.reserve(shape.count);
    while (owners.size() < shape.count) {
        const auto first = static_cast<SampleIndex>(owners.size());
        const std::uint32_t samples = std::min(block, shape.count - first);
        const AccessCounts counts{shape, counted, member_of, members, first, samples};
        for (const std::uint32_t owner : place_pooled(counts, (samples + members - 1) / members)) {
            owners.push_back(static_cast<std::uint16_t>(owner));
        }
    }
    return owners;
}

double expected_above(
    double samples, std::uint64_t epochs, std::uint32_t ranks, std::uint64_t threshold) {
    const auto mass = binomial(epochs, 1.0 / ranks);
    double tail = 0;
    for (std::uint64_t k = epochs; k > threshold; --k) {
        tail += mass[k];
    }
    return samples * tail;
}

double expected_local_share(std::uint64_t epochs, std::uint32_t ranks, double kept_share) {
    const auto mass = binomial(epochs, 1.0 / ranks);
    double room = kept_share;
    double served = 0;
    for (std::uint64_t k = epochs; k > 0 && room > 0; --k) {
        const double kept = std::min(room, mass[k]);
        served += kept * static_cast<double>(k);
        room -= kept;
    }
    return served / (static_cast<double>(epochs) / ranks);
}

}  // namespace stoker::sidecar
