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
    // Samples of mean size that the node's window holds. Readers divide half of it among them as
    // their lookahead; the other half takes what one has read and another has not.
    std::uint32_t window_samples = 0;

    // Samples that a reader has before it, here or coming, at most. Choose what covers the origin's
    // latency at the reader's speed.
    std::uint32_t lookahead_max = 256;

    // How far a reader may run ahead of, or fall behind, the even mix of kept and passing samples:
    // a share of its epoch. 0: the mix of a uniform shuffle; more: fewer fetches when speeds
    // differ.
    double drift_max = domain::standard_of("windowed", "drift");

    std::uint32_t readers_max = NeedIndex::kReadersMax;  // at most that
};

// One scan over a dataset that all jobs of a node share, so that what is fetched for one is read by
// all who still need it, then dropped, and fetched again only in the fastest reader's next epoch.
// Where a leading job takes all, the others take what passes; what they skip comes round again. It
// decides three things, and holds no bytes:
// - feed(): what is fetched next. Among the absent samples one that as many hungry readers as
//   possible need, and as few sated ones (those get it later, from another round); among equals a
//   random one. A reader is hungry while it has less than its lookahead. One that somebody
//   overtakes before its epoch ends does not make the node fetch for it alone.
// - draw(): what a reader gets. Kept and passing samples are mixed as a uniform shuffle would mix
//   them; of the passing ones, those that fewest need go first, because that frees the window.
// - victims(): what leaves a full window: what fewest readers wait for.
//
// Traffic: about (1 - share kept) of the dataset for each epoch of the fastest reader, however many
// others there are; nobody can fetch less for that reader alone. docs/design/sampling-windowed.md
// has the figures.
//
// A reader is one rank of one job on this node. Deterministic: equal seeds and equal calls choose
// equally. Not thread-safe; cost of a draw: O(readers + sets of readers that occur), under 1 us.
class SharedScan final : public WindowKeeper {
public:
    using Reader = std::uint32_t;

    SharedScan(std::uint32_t sample_count, ScanLimits limits, std::uint64_t seed);

    [[nodiscard]] std::uint32_t sample_count() const { return index_.size(); }

    // nullopt: as many as may have joined already.
    std::optional<Reader> join();
    void leave(Reader reader);

    // A new epoch over all samples, or over a share of them (without duplicates). What was left of
    // the last one is forgotten.
    void begin(Reader reader);
    void begin(Reader reader, std::span<const SampleIndex> share);

    // The reader's next sample; nullopt: its epoch has ended. Stored, but for a reader that is
    // faster than the origin: then the one that will arrive first.
    std::optional<SampleIndex> draw(Reader reader, Prng& prng);

    // The reader has read it before (a resumed epoch).
    void mark_read(Reader reader, SampleIndex sample);

    // `kept`: it stays (class resident); otherwise it is in the window. Repeating is harmless.
    void on_stored(SampleIndex sample, bool kept);

    // It was dropped, or could not be fetched.
    void on_gone(SampleIndex sample);

    // What to fetch, oldest first. A sample leaves by on_stored() or on_gone(), or when nobody
    // needs it any more.
    [[nodiscard]] const std::deque<SampleIndex>& feed() const { return feed_; }

    [[nodiscard]] bool is_stored(SampleIndex sample) const {
        return index_.state(sample) >= ScanState::kWindow;
    }

    // Will a reader draw it in its current epoch? A window sample may go as soon as not.
    [[nodiscard]] bool is_needed(SampleIndex sample) const { return index_.readers(sample) != 0; }

    [[nodiscard]] bool needs(Reader reader, SampleIndex sample) const {
        return ((index_.readers(sample) >> reader) & 1U) != 0;
    }

    // That have joined.
    [[nodiscard]] std::uint32_t reader_count() const {
        return static_cast<std::uint32_t>(std::popcount(joined_));
    }

    [[nodiscard]] bool keeps(SampleIndex sample) const override { return is_needed(sample); }

    // Is it in the lookahead of a reader that has no more than that?
    [[nodiscard]] bool is_soon(SampleIndex sample) const {
        return (index_.readers(sample) & hungry(1)) != 0;
    }

    // Those that fewest readers wait for first; urgent: then what is somebody's lookahead. What
    // nobody needs is not among them: it goes when its last reader has read it. Looks at so many
    // samples in one call, and goes on behind them in the next one.
    void victims(const RoomRequest& room, std::vector<SampleIndex>& samples) const override;

    static constexpr std::uint32_t kVictimLooksMax = 8192;

private:
    using Bucket = NeedIndex::Bucket;
    using Readers = NeedIndex::Readers;

    struct State {
        bool joined = false;
        std::uint32_t length = 0;  // of the current epoch
        double kept_share = 0;     // of the epoch, when it began
        std::uint32_t draws = 0;   // lately: its speed in proportion to the others'
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
    Readers active_ = 0;  // in an epoch
    std::uint32_t lookahead_ = 1;
    std::uint32_t recent_draws_ = 0;
    std::deque<SampleIndex> feed_;
    mutable std::uint32_t looked_at_ = 0;  // by the last victims(), in vain
};

}  // namespace stoker::sidecar
