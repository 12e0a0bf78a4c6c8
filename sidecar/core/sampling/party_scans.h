#pragma once

#include <map>

#include "sidecar/core/sampling/windowed_scan.h"

namespace stoker::sidecar {

// The scans of all jobs that read one dataset `windowed` on one node: one a party. A party's jobs
// divide its fetches as SharedScan says. Other parties read what passes by, and neither choose nor
// slow down what is fetched for it. Not thread-safe.
class PartyScans final : public WindowKeeper {
public:
    static constexpr std::size_t kGuestsMax = 8;             // guests with a scan: memory
    static constexpr std::uint32_t kGuestReadersMax = 8;     // ranks of one guest: time of a draw
    static constexpr std::uint32_t kGuestWindowDivisor = 2;  // a guest plans with half the window

    explicit PartyScans(std::uint32_t sample_count)
        : sample_count_(sample_count) {}

    // Makes it where it is missing; `limits` and `seed` count then, and the caller tells it what is
    // stored. nullptr: kGuestsMax other guests have readers.
    SharedScan* find_or_make(Party party, ScanLimits limits, std::uint64_t seed);

    [[nodiscard]] bool has(Party party) const { return scans_.contains(party); }

    [[nodiscard]] bool is_empty() const { return scans_.empty(); }

    void on_stored(SampleIndex sample, bool kept);
    void on_gone(SampleIndex sample);

    [[nodiscard]] bool keeps(SampleIndex sample) const override;

    // What only strangers need goes first: neither the own party nor the one that wants the room.
    void victims(const RoomRequest& room, std::vector<SampleIndex>& samples) const override;

private:
    [[nodiscard]] bool is_soon(Party party, SampleIndex sample) const;

    std::uint32_t sample_count_;
    std::map<Party, SharedScan> scans_;  // addresses are stable
};

}  // namespace stoker::sidecar
