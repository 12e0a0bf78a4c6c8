#pragma once

#include <cstdint>
#include <vector>

#include "common/domain/contract_table.h"
#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/importance_values.h"
#include "sidecar/core/eviction/keyed_heaps.h"

namespace stoker::sidecar {

// Keeps the most important samples (iCACHE, HPCA 2023), in bytes:
//
// - The H-region is a min-heap by value. An important sample is admitted only by displacing
//   residents of lower value; residents of equal value stay.
// - The L-region holds unimportant samples, which substitute for one another, in at most `l_share`
//   of the bytes. A new one displaces samples that were read, or that arrived before the last
//   refresh(). The H-region yields bytes until the share is filled, and takes back any excess.
//
// A resident keeps its value from admission until refresh(), which is incremental: each call moves
// a few residents from the main heap to the shadow heap with their new values, and both heaps serve
// meanwhile. Call refresh() at the end of an epoch.
//
// Memory: 4 bytes per sample of the dataset and 12 per resident, up to 24 per resident during a
// refresh. A sample of more than 4 GiB counts as 4 GiB.
class ImportanceEviction final : public EvictionPolicy {
public:
    struct Settings {
        // Largest share of the resident bytes for the L-region (unimportant samples).
        double l_share = domain::standard_of("importance", "lShare");
        std::uint32_t migrate = 4;  // residents moved per call while refreshing; at least 1
    };

    // `values` must outlive the policy.
    ImportanceEviction(
        std::uint32_t count, const ImportanceValues& values, const Settings& settings);

    ImportanceEviction(std::uint32_t count, const ImportanceValues& values)
        : ImportanceEviction(count, values, Settings{}) {}

    void on_resident(SampleIndex sample, Bytes bytes) override;
    void on_gone(SampleIndex sample) override;
    void on_read(SampleIndex sample, bool hit) override;
    void expect(std::span<const SampleIndex> samples) const override;
    bool make_room(
        SampleIndex incoming,
        Bytes needed,
        const MayGo& may_go,
        std::vector<SampleIndex>& victims) override;
    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override;

    // While held, nothing is displaced: a full epoch reads every sample, so a read says nothing
    // about importance.
    void hold(bool held) { held_ = held; }

    // Sets the L-region's share of the resident bytes, 0..1.
    void set_l_share(double share) { settings_.l_share = share; }

    [[nodiscard]] double l_share() const { return settings_.l_share; }

    // Starts to replace all values by current ones. During a refresh: runs one more after it.
    void refresh();

    [[nodiscard]] bool refreshing() const { return migrating_; }

    [[nodiscard]] Bytes unimportant_bytes() const { return unimportant_bytes_; }

    [[nodiscard]] Bytes resident_bytes() const { return resident_bytes_; }

private:
    using Entry = ImportanceHeaps::Entry;

    struct Room {
        Bytes needed;
        const MayGo& may_go;
        std::vector<SampleIndex>& victims;
        Bytes freed = Bytes::zero();

        bool take(const Entry& entry);
    };

    [[nodiscard]] std::uint32_t key_of(SampleIndex sample) const;
    [[nodiscard]] Bytes share_of(Bytes total) const;
    [[nodiscard]] bool is_spent(const Entry& entry) const;
    void migrate(std::uint32_t count);
    bool take_important(Room& room, std::uint32_t below);
    bool take_unimportant(Room& room, Bytes down_to, bool spent_only);
    bool room_for_important(SampleIndex incoming, Room& room);
    bool room_for_unimportant(Room& room);

    const ImportanceValues& values_;
    Settings settings_;
    ImportanceHeaps heaps_;
    std::uint32_t main_ = 0;    // index of the main heap in the array of heaps
    std::uint32_t shadow_ = 1;  // empty unless migrating
    bool migrating_ = false;
    bool migrate_again_ = false;
    bool held_ = false;
    std::uint32_t arrivals_ = 0;    // number of unimportant samples that have arrived
    std::uint32_t old_before_ = 0;  // arrivals_ at the last refresh
    Bytes resident_bytes_;
    Bytes unimportant_bytes_;
    std::vector<ImportanceHeaps::Candidate> candidates_;  // reused buffer
};

}  // namespace stoker::sidecar
