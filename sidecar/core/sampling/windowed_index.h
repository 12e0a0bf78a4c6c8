#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "common/base/piece_list.h"
#include "common/domain/ids.h"

namespace stoker::sidecar {

using domain::SampleIndex;

// Residency of a sample of a shared scan.
enum class ScanState : std::uint8_t {
    kAbsent,  // neither stored nor chosen to be fetched
    kComing,  // chosen to be fetched
    kWindow,  // stored, to be dropped when no reader needs it
    kFresh,   // resident, but not yet read by all readers that needed it when it arrived
    kKept,    // resident
};

constexpr std::size_t kScanStates = 5;

// Which readers still need which samples in their current epochs, and where each sample is. Every
// sample is in exactly one bucket, that of its (state, set of needing readers). So choosing a
// random sample that is absent and needed by given readers takes one scan of the buckets, which are
// few (at most one per set of readers that occurs and state), and the start of a reader's epoch
// over all samples renames buckets instead of moving samples.
//
// 12 bytes per sample, for any number of readers. Moving a sample costs O(1). Pure value; not
// thread-safe.
class NeedIndex {
public:
    using Readers = std::uint64_t;  // one bit per reader
    static constexpr std::uint32_t kReadersMax = 56;

    struct Bucket {
        Readers readers = 0;
        ScanState state = ScanState::kAbsent;
        PieceList<SampleIndex, 4096> samples;
    };

    // Starts with all samples absent and needed by no reader.
    explicit NeedIndex(std::uint32_t sample_count);

    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(where_.size()); }

    [[nodiscard]] ScanState state(SampleIndex sample) const {
        return buckets_[where_[sample].bucket].state;
    }

    [[nodiscard]] Readers readers(SampleIndex sample) const {
        return buckets_[where_[sample].bucket].readers;
    }

    // Hint: the sample is moved soon; prefetches its place into the processor's cache.
    void expect(SampleIndex sample) const { __builtin_prefetch(&where_[sample], 1); }

    void move(SampleIndex sample, ScanState state) { put(sample, {readers(sample), state}); }

    void need(SampleIndex sample, std::uint32_t reader);
    void unneed(SampleIndex sample, std::uint32_t reader);

    // The reader now needs every sample; it must have needed none.
    void need_all(std::uint32_t reader);

    // The reader needs no sample any more.
    void unneed_all(std::uint32_t reader);

    // Number of samples at `state` that the reader needs.
    [[nodiscard]] std::uint32_t count(std::uint32_t reader, ScanState state) const {
        return counts_[reader][static_cast<std::size_t>(state)];
    }

    // Number of samples that the reader needs, in any state.
    [[nodiscard]] std::uint32_t count(std::uint32_t reader) const;

    // Number of samples at `state`, needed or not.
    [[nodiscard]] std::uint32_t count(ScanState state) const {
        return totals_[static_cast<std::size_t>(state)];
    }

    // All buckets. Their order depends only on the history. Buckets may be empty.
    [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }

    // Number of samples at `state` that exactly these readers need.
    [[nodiscard]] std::uint32_t count_of(Readers readers, ScanState state) const;

    // The samples at `state` that exactly these readers need.
    [[nodiscard]] std::vector<SampleIndex> copy(Readers readers, ScanState state) const;

private:
    struct Key {
        Readers readers = 0;
        ScanState state = ScanState::kAbsent;

        [[nodiscard]] Readers packed() const {
            return (readers << 8U) | static_cast<Readers>(state);
        }
    };

    using StateCounts = std::array<std::uint32_t, kScanStates>;

    std::uint32_t bucket_for(Key key);
    void put(SampleIndex sample, Key key);
    void rename(std::uint32_t bucket, Readers readers);
    void retire(std::uint32_t bucket);

    struct Where {
        std::uint32_t bucket = 0;
        std::uint32_t slot = 0;
    };

    std::vector<Where> where_;  // by sample: its bucket and position there
    std::vector<Bucket> buckets_;
    std::vector<std::uint32_t> retired_;
    std::unordered_map<Readers, std::uint32_t> by_key_;
    std::array<StateCounts, kReadersMax> counts_{};
    StateCounts totals_{};
};

}  // namespace stoker::sidecar
