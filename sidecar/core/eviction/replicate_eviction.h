#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"

namespace stoker::sidecar {

// SHADE's cache (FAST 2023): residents in a priority queue and every sample ever seen in a ghost
// queue (metadata only), both keyed by (score, reads), compared in that order. A miss displaces the
// smallest residents when its ghost's key is larger than theirs; otherwise it is served without
// being kept. Since the next epoch's draws follow the same scores, keeping high ones prefetches.
//
// 8 bytes a sample ever seen and about 70 a resident.
class ReplicateEviction final : public EvictionPolicy {
public:
    void on_resident(SampleIndex sample, Bytes bytes) override;
    void on_gone(SampleIndex sample) override;
    void on_read(SampleIndex sample, bool hit) override;

    // After each batch, for each sample that it scored.
    void on_score(SampleIndex sample, float score);

    bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) override;

    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override;

private:
    struct Key {
        float score = 0;
        std::uint32_t reads = 0;

        auto operator<=>(const Key&) const = default;
    };

    struct Entry {
        Key key;
        SampleIndex sample = 0;
        Bytes bytes{};

        // bytes follow from the sample
        bool operator<(const Entry& other) const {
            if (key != other.key) {
                return key < other.key;
            }
            return sample < other.sample;
        }
    };

    Key& ghost(SampleIndex sample);
    void set_key(SampleIndex sample, Key key);

    std::vector<Key> ghosts_;  // by sample
    std::vector<bool> resident_;
    std::set<Entry> queue_;
};

}  // namespace stoker::sidecar
