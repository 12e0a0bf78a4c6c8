#include "sidecar/core/placement.h"

#include <cstring>
#include <utility>

#include "common/base/wire.h"
#include "common/domain/segment_format.h"

namespace stoker::sidecar {

namespace {

// The finalizer of SplitMix64.
constexpr std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
    return value ^ (value >> 31U);
}

// The node with the highest score among those for which `counts` is true. Ties go to the lower
// position.
template <class Counts>
std::optional<std::size_t> highest(
    std::span<const std::uint64_t> nodes, std::uint64_t key, const Counts& counts) {
    std::optional<std::size_t> best;
    std::uint64_t best_score = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::uint64_t score = mixed(nodes[i] ^ key);
        if ((score > best_score || !best) && counts(i)) {
            best_score = score;
            best = i;
        }
    }
    return best;
}

}  // namespace

std::uint64_t placement_hash(std::string_view text) {
    std::uint64_t hash = mixed(text.size() + 0x9E3779B97F4A7C15ULL);
    while (!text.empty()) {
        const std::size_t count = text.size() < sizeof(hash) ? text.size() : sizeof(hash);
        std::uint64_t word = 0;
        std::memcpy(&word, text.data(), count);
        hash = mixed((hash ^ word) * 0x9E3779B97F4A7C15ULL);
        text.remove_prefix(count);
    }
    return hash;
}

Placement::Placement(
    const SampleSizes& sizes,
    KeyOf key_of,
    std::span<const std::string> nodes,
    std::size_t self,
    std::vector<std::uint16_t> owners)
    : key_of_(std::move(key_of)),
      self_(self),
      owners_(std::move(owners)),
      own_(sizes.count()) {
    for (const std::string& node : nodes) {
        nodes_.push_back(placement_hash(node));
    }
    for (SampleIndex sample = 0; sample < sizes.count(); ++sample) {
        if (owner(sample) == self) {
            own_[sample] = true;
            own_bytes_ += Bytes{domain::record_bytes(sizes.of(sample).count())};
            ++own_samples_;
            own_payload_ += sizes.of(sample);
        }
    }
}

std::size_t Placement::owner(SampleIndex sample) const {
    if (!owners_.empty()) {
        return owners_[sample];
    }
    return highest(nodes_, placement_hash(key_of_(sample)), [](std::size_t) { return true; })
        .value_or(0);
}

std::optional<std::size_t> Placement::runner_up(
    SampleIndex sample, const std::function<bool(std::size_t)>& counts) const {
    return highest(nodes_, placement_hash(key_of_(sample)), [&](std::size_t node) {
        return node != self_ && counts(node);
    });
}

}  // namespace stoker::sidecar
