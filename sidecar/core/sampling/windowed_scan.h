#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "common/base/prng.h"
#include "common/domain/contract_table.h"
#include "sidecar/core/eviction/window_keeper.h"
#include "sidecar/core/sampling/windowed_index.h"

namespace stoker::sidecar {

struct ScanLimits {
    // Window capacity in samples of mean size. One half is divided among the readers as lookahead;
    // the other half holds samples that some readers have read and others have not.
    std::uint32_t window_samples = 0;

    // Upper limit of a reader's lookahead: samples for it that are stored or on the way. Should
    // cover the origin's latency at the reader's speed.
    std::uint32_t lookahead_max = 256;

    // How far a reader may deviate from the even mix of kept and passing samples, as a share of its
    // epoch. 0: the mix of a uniform shuffle; more: fewer fetches when speeds differ.
    double drift_max = domain::standard_of("windowed", "drift");

    std::uint32_t readers_max = NeedIndex::kReadersMax;  // at most NeedIndex::kReadersMax
};

// One scan over a dataset, shared by all jobs of a node: a sample fetched for one job is read by
// all jobs that still need it, then dropped, and fetched again only in the fastest reader's next
// epoch. If the fastest job uses the whole origin rate, the others read the samples that pass by;
// samples that they miss are fetched again later. It makes three decisions and holds no bytes:
// - feed(): the next sample to fetch. Prefers absent samples that many hungry readers need and few
//   sated ones (a later round serves those); ties are broken at random. A reader is hungry while it
//   has less than its lookahead. Nothing is fetched for a single reader that another one will
//   overtake before its epoch ends.
// - draw(): the next sample of a reader. Kept and passing samples are mixed as in a uniform
//   shuffle. Passing samples that few readers need go first, because that frees the window.
// - victims(): the samples to drop from a full window: those that the fewest readers wait for.
//
// Traffic: about (1 - share kept) of the dataset for each epoch of the fastest reader, independent
// of the number of other readers; that reader alone would need as much.
// docs/design/sampling-windowed.md has the figures.
//
// A reader is one rank of one job on this node. Deterministic: equal seeds and equal calls give
// equal choices. Not thread-safe. A draw costs O(readers + distinct sets of readers), under 1 us.
class SharedScan final : public WindowKeeper {
public:
    using Reader = std::uint32_t;

    SharedScan(std::uint32_t sample_count, ScanLimits limits, std::uint64_t seed);

    [[nodiscard]] std::uint32_t sample_count() const { return index_.size(); }

    // Adds a reader. nullopt: readers_max readers have joined already.
    std::optional<Reader> join();
    void leave(Reader reader);

    // Call when the window's size has changed; `samples`: its room, in samples of mean size.
    void set_window(std::uint32_t samples) {
        limits_.window_samples = samples;
        replenish();
    }

    // Begins a new epoch over all samples, or over `share` (without duplicates). Discards the rest
    // of the reader's last epoch.
    void begin(Reader reader);
    void begin(Reader reader, std::span<const SampleIndex> share);

    // The reader's next sample; nullopt: its epoch has ended. The sample is stored, unless the
    // reader is faster than the origin: then it is the one that will arrive first.
    std::optional<SampleIndex> draw(Reader reader, Prng& prng);

    // Marks the sample as already read (a resumed epoch).
    void mark_read(Reader reader, SampleIndex sample);

    // The sample was stored. `kept`: it is resident; otherwise it is in the window. Idempotent.
    void on_stored(SampleIndex sample, bool kept);

    // The sample was dropped, or its fetch failed.
    void on_gone(SampleIndex sample);

    // Samples to fetch, oldest first. on_stored() and on_gone() remove a sample, and also that no
    // reader needs it any more.
    [[nodiscard]] const std::deque<SampleIndex>& feed() const { return feed_; }

    [[nodiscard]] bool is_stored(SampleIndex sample) const {
        return index_.state(sample) >= ScanState::kWindow;
    }

    // Whether a reader will draw the sample in its current epoch. A window sample that no reader
    // will draw may be dropped.
    [[nodiscard]] bool is_needed(SampleIndex sample) const { return index_.readers(sample) != 0; }

    [[nodiscard]] bool needs(Reader reader, SampleIndex sample) const {
        return ((index_.readers(sample) >> reader) & 1U) != 0;
    }

    // Number of readers that have joined.
    [[nodiscard]] std::uint32_t reader_count() const {
        return static_cast<std::uint32_t>(std::popcount(joined_));
    }

    [[nodiscard]] bool keeps(SampleIndex sample) const override { return is_needed(sample); }

    // Whether a reader that needs the sample has no more samples stored or on the way than its
    // lookahead, so that it will read the sample soon.
    [[nodiscard]] bool is_soon(SampleIndex sample) const {
        return (index_.readers(sample) & hungry(1)) != 0;
    }

    // Window samples to drop, those that the fewest readers wait for first; if urgent, lookahead
    // samples after them. Excludes samples that no reader needs: those are dropped once their last
    // reader has read them. Examines at most kVictimLooksMax or kPrefetchLooksMax samples per call,
    // in each bucket at most half of those still allowed; the next call continues behind them.
    void victims(const RoomRequest& room, std::vector<SampleIndex>& samples) const override;

    // Samples that one call examines. A prefetch can try again with the next event, so it examines
    // few: while loaders hold most of the window, each sample examined costs a search of the plans.
    static constexpr std::uint32_t kVictimLooksMax = 8192;
    static constexpr std::uint32_t kPrefetchLooksMax = 128;

private:
    using Bucket = NeedIndex::Bucket;
    using Readers = NeedIndex::Readers;

    struct State {
        bool joined = false;
        std::uint32_t length = 0;  // samples of the current epoch
        double kept_share = 0;     // share of kept samples when the epoch began
        std::uint32_t draws = 0;   // recent draws: the reader's speed relative to the others
    };

    void start_epoch(Reader reader);
    void take(Reader reader, SampleIndex sample);
    void settle(SampleIndex sample);
    void count_draw(Reader reader);
    SampleIndex choose(Reader reader, Prng& prng);
    [[nodiscard]] bool wants_kept(Reader reader, Prng& prng) const;
    [[nodiscard]] SampleIndex random_kept(Reader reader, Prng& prng) const;
    [[nodiscard]] std::optional<SampleIndex> least_needed(Reader reader, Prng& prng) const;
    [[nodiscard]] std::optional<SampleIndex> first_coming(Reader reader) const;

    void replenish();
    [[nodiscard]] Readers hungry(std::uint32_t margin) const;
    [[nodiscard]] bool can_wait(Reader reader) const;
    [[nodiscard]] std::vector<const Bucket*> by_loss(bool urgent) const;
    [[nodiscard]] const Bucket* best_absent(Readers hungry, Readers demanding) const;
    SampleIndex order_from(const Bucket& bucket);
    void expect_orders(const Bucket& bucket) const;
    void unfeed(SampleIndex sample);

    [[nodiscard]] std::uint32_t near(Reader reader) const;
    [[nodiscard]] double kept_ahead(Reader reader) const;
    [[nodiscard]] double drift_limit(Reader reader) const;
    void share_window();

    NeedIndex index_;
    ScanLimits limits_;
    Prng prng_;
    std::array<State, NeedIndex::kReadersMax> readers_{};
    Readers joined_ = 0;
    Readers active_ = 0;  // readers that are in an epoch
    std::uint32_t lookahead_ = 1;
    std::uint32_t recent_draws_ = 0;
    std::deque<SampleIndex> feed_;
    mutable std::uint32_t looked_at_ = 0;  // position in each bucket where victims() continues
};

}  // namespace stoker::sidecar
