#pragma once

#include <map>

#include "sidecar/core/sampling/windowed_scan.h"

namespace stoker::sidecar {

// The windowed scans of one dataset on one node, one per party (the dataset's own namespace or one
// guest namespace). SharedScan shares the fetches among the jobs of a party. Jobs of other parties
// may read a sample while it is stored, but neither choose nor delay the scan's fetches. Not
// thread-safe.
class PartyScans final : public WindowKeeper {
public:
    static constexpr std::size_t kGuestsMax = 8;             // guests with a scan: bounds memory
    static constexpr std::uint32_t kGuestReadersMax = 8;     // ranks of one guest: bounds draw time
    static constexpr std::uint32_t kGuestWindowDivisor = 2;  // a guest plans with half the window

    explicit PartyScans(std::uint32_t sample_count)
        : sample_count_(sample_count) {}

    // Creates the scan if missing; only then are `limits` and `seed` used, and the caller must
    // report the stored samples. nullptr: kGuestsMax other guests have readers.
    SharedScan* find_or_make(Party party, ScanLimits limits, std::uint64_t seed);

    // Sets the window with which the own party's scan plans, in samples of mean size.
    void set_own_window(std::uint32_t samples) {
        if (const auto own = scans_.find(kOwnParty); own != scans_.end()) {
            own->second.set_window(samples);
        }
    }

    [[nodiscard]] bool has(Party party) const { return scans_.contains(party); }

    [[nodiscard]] bool is_empty() const { return scans_.empty(); }

    void on_stored(SampleIndex sample, bool kept);
    void on_gone(SampleIndex sample);

    [[nodiscard]] bool keeps(SampleIndex sample) const override;

    // Appends samples to drop; first those that neither the own nor the requesting party needs.
    void victims(const RoomRequest& room, std::vector<SampleIndex>& samples) const override;

private:
    [[nodiscard]] bool is_soon(Party party, SampleIndex sample) const;

    std::uint32_t sample_count_;
    std::map<Party, SharedScan> scans_;  // addresses are stable
};

}  // namespace stoker::sidecar
