#include "sidecar/core/sampling/redundancy_groups.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

// Sets that are joined; the lowest member stands for its set.
class Sets {
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

// Joins equal fingerprints, and gives one sample of each.
std::vector<SampleIndex> join_equal(std::span<const Fingerprint> fingerprints, Sets& sets) {
    std::vector<SampleIndex> order(fingerprints.size());
    std::iota(order.begin(), order.end(), 0U);
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

// Joins those that agree in the bits of `band` and are near.
void join_near(
    std::span<const Fingerprint> fingerprints,
    Fingerprint band,
    std::uint32_t threshold,
    std::vector<SampleIndex>& distinct,
    Sets& sets) {
    const auto part = [&](SampleIndex sample) { return fingerprints[sample] & band; };
    std::sort(distinct.begin(), distinct.end(), [&](SampleIndex a, SampleIndex b) {
        return part(a) != part(b) ? part(a) < part(b) : a < b;
    });
    for (std::size_t i = 0; i < distinct.size(); ++i) {
        for (std::size_t j = i + 1; j < distinct.size() && part(distinct[j]) == part(distinct[i]);
             ++j) {
            if (distance(fingerprints[distinct[i]], fingerprints[distinct[j]]) <= threshold) {
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
    : first_(fingerprints.size(), 0) {
    STOKER_CHECK(threshold < 64, "there are 64 bits");
    const auto count = static_cast<std::uint32_t>(fingerprints.size());
    Sets sets(count);
    auto distinct = join_equal(fingerprints, sets);
    const std::uint32_t bands = threshold == 0 ? 0 : threshold + 1;
    for (std::uint32_t band = 0; band < bands; ++band) {
        const Fingerprint bits = bits_between(band * 64 / bands, (band + 1) * 64 / bands);
        join_near(fingerprints, bits, threshold, distinct, sets);
    }

    // Group by group, in the order of their lowest members, each ascending.
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
