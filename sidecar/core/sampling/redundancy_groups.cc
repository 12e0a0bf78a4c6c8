#include "sidecar/core/sampling/redundancy_groups.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "common/base/check.h"

namespace stoker::sidecar {

// Disjoint sets of samples; the lowest member represents its set.
class RedundancyGroups::Sets {
public:
    explicit Sets(std::size_t count)
        : parents_(count) {
        std::iota(parents_.begin(), parents_.end(), 0U);
    }

    std::uint32_t find(std::uint32_t member) {
        while (parents_[member] != member) {
            parents_[member] = parents_[parents_[member]];
            member = parents_[member];
        }
        return member;
    }

    void join(std::uint32_t a, std::uint32_t b) {
        const std::uint32_t root_a = find(a);
        const std::uint32_t root_b = find(b);
        parents_[std::max(root_a, root_b)] = std::min(root_a, root_b);
    }

private:
    std::vector<std::uint32_t> parents_;
};

namespace {

// Joins the samples of `order` with equal fingerprints, and returns one sample of each set.
template <class Sets>
std::vector<SampleIndex> join_equal(
    std::span<const Fingerprint> fingerprints, std::vector<SampleIndex> order, Sets& sets) {
    std::sort(order.begin(), order.end(), [&](SampleIndex a, SampleIndex b) {
        return fingerprints[a] != fingerprints[b] ? fingerprints[a] < fingerprints[b] : a < b;
    });
    std::vector<SampleIndex> distinct;
    for (const SampleIndex sample : order) {
        if (!distinct.empty() && fingerprints[distinct.back()] == fingerprints[sample]) {
            sets.join(distinct.back(), sample);
        } else {
            distinct.push_back(sample);
        }
    }
    return distinct;
}

// Joins samples that agree in the bits of `band` and are near-duplicates.
template <class Sets>
void join_near(
    std::span<const Fingerprint> fingerprints,
    Fingerprint band,
    std::uint32_t threshold,
    std::uint32_t looks,
    std::vector<SampleIndex>& distinct,
    Sets& sets) {
    const auto part = [&](SampleIndex sample) { return fingerprints[sample] & band; };
    std::sort(distinct.begin(), distinct.end(), [&](SampleIndex a, SampleIndex b) {
        return part(a) != part(b) ? part(a) < part(b) : a < b;
    });
    for (std::size_t i = 0; i < distinct.size(); ++i) {
        const std::size_t last = std::min(distinct.size(), i + 1 + looks);
        for (std::size_t j = i + 1; j < last && part(distinct[j]) == part(distinct[i]); ++j) {
            const Fingerprint differ = fingerprints[distinct[i]] ^ fingerprints[distinct[j]];
            if (static_cast<std::uint32_t>(std::popcount(differ)) <= threshold) {
                sets.join(distinct[i], distinct[j]);
            }
        }
    }
}

Fingerprint bits_between(std::uint32_t first, std::uint32_t last) {
    const Fingerprint below_last = last == 64 ? ~Fingerprint{0} : (Fingerprint{1} << last) - 1;
    return below_last & ~((Fingerprint{1} << first) - 1);
}

}  // namespace

RedundancyGroups::RedundancyGroups(
    std::span<const Fingerprint> fingerprints, std::uint32_t threshold)
    : RedundancyGroups(
          fingerprints,
          threshold,
          std::vector<bool>(fingerprints.size(), true),
          RedundancyGroups{},
          std::numeric_limits<std::uint32_t>::max()) {}

RedundancyGroups::RedundancyGroups(
    std::span<const Fingerprint> fingerprints,
    std::uint32_t threshold,
    const std::vector<bool>& known,
    const RedundancyGroups& before,
    std::uint32_t looks)
    : first_(fingerprints.size(), 0) {
    STOKER_CHECK(threshold < 64, "the threshold must be below 64 bits");
    const auto count = static_cast<std::uint32_t>(fingerprints.size());
    Sets sets(count);
    std::vector<SampleIndex> order;
    for (SampleIndex sample = 0; sample < count; ++sample) {
        if (known[sample]) {
            order.push_back(sample);
        }
        if (before.is_copy(sample)) {
            sets.join(before.group_of(sample).front(), sample);
        }
    }
    auto distinct = join_equal(fingerprints, std::move(order), sets);
    const std::uint32_t bands = threshold == 0 ? 0 : threshold + 1;
    for (std::uint32_t band = 0; band < bands; ++band) {
        const Fingerprint bits = bits_between(band * 64 / bands, (band + 1) * 64 / bands);
        join_near(fingerprints, bits, threshold, looks, distinct, sets);
    }
    arrange(sets);
}

RedundancyGroups RedundancyGroups::of(std::uint32_t count, std::span<const Copy> copies) {
    Sets sets(count);
    for (const auto& [copy, first] : copies) {
        if (copy < count && first < count) {
            sets.join(first, copy);
        }
    }
    RedundancyGroups groups;
    groups.first_.resize(count);
    groups.arrange(sets);
    return groups;
}

std::vector<RedundancyGroups::Copy> RedundancyGroups::copies() const {
    std::vector<Copy> found;
    for (std::uint32_t place = 0; place < members_.size(); ++place) {
        if (const std::uint32_t first = first_[members_[place]]; first != place) {
            found.emplace_back(members_[place], members_[first]);
        }
    }
    return found;
}

// Writes the groups in the order of their lowest members, each ascending.
void RedundancyGroups::arrange(Sets& sets) {
    const auto count = static_cast<std::uint32_t>(first_.size());
    for (SampleIndex sample = 0; sample < count; ++sample) {
        members_.push_back(sample);
    }
    std::stable_sort(members_.begin(), members_.end(), [&](SampleIndex a, SampleIndex b) {
        return sets.find(a) < sets.find(b);
    });
    for (std::uint32_t place = 0; place < count; ++place) {
        const bool opens =
            place == 0 || sets.find(members_[place]) != sets.find(members_[place - 1]);
        first_[members_[place]] = opens ? place : first_[members_[place - 1]];
    }
}

std::span<const SampleIndex> RedundancyGroups::group_of(SampleIndex sample) const {
    if (sample >= first_.size()) {
        return {};
    }
    const std::uint32_t first = first_[sample];
    std::uint32_t last = first;
    while (last < members_.size() && first_[members_[last]] == first) {
        ++last;
    }
    return std::span{members_}.subspan(first, last - first);
}

}  // namespace stoker::sidecar
