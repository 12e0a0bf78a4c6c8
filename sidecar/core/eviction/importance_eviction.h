#pragma once

#include <cstdint>
#include <vector>

#include "common/domain/contract_table.h"
#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/importance_values.h"
#include "sidecar/core/eviction/keyed_heaps.h"

namespace stoker::sidecar {

// Keeps what is important (iCACHE, HPCA 2023), in bytes:
//
// - The H-region is a min-heap by value. An important sample comes in only by displacing residents
//   of less value than its own; equals stay.
// - The L-region holds unimportant samples, to be substituted for one another, in at most
//   `l_share` of the bytes. There, new content takes the place of what has been read, and
//   of what was there before the last refresh(); the H-region gives way until the share is filled,
//   and takes back what exceeds it.
//
// Values are those of the time of admission until refresh(), which takes the values of now without
// stopping anything: residents migrate from the main heap into the shadow heap with their new values,
// a few at every call, and both heaps answer meanwhile. Whoever owns the policy calls it at the end
// of an epoch.
//
// 4 bytes a sample of the dataset and 12 a resident, twice that at most while it refreshes. A
// sample of more than 4 GiB counts as 4 GiB.
class ImportanceEviction final : public EvictionPolicy {
public:
    struct Settings {
        // Share of the resident bytes.
        double l_share = domain::standard_of("importance", "lShare");
        std::uint32_t migrate = 4;  // residents per call while refreshing, at least 1
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

    // While held, nothing is displaced: a job walks through everything (a full epoch), and what it
    // passes is not more important for that.
    void hold(bool held) { held_ = held; }

    // Share of the resident bytes from now on, 0..1.
    void set_l_share(double share) { settings_.l_share = share; }

    [[nodiscard]] double l_share() const { return settings_.l_share; }

    // Begins to take over the values of now; once more after that where one is under way.
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
    std::uint32_t main_ = 0;    // which heap
    std::uint32_t shadow_ = 1;  // empty unless migrating
    bool migrating_ = false;
    bool migrate_again_ = false;
    bool held_ = false;
    std::uint32_t arrivals_ = 0;    // of unimportant samples
    std::uint32_t old_before_ = 0;  // arrivals before the last refresh
    Bytes resident_bytes_;
    Bytes unimportant_bytes_;
    std::vector<ImportanceHeaps::Candidate> candidates_;  // kept for its memory
};

}  // namespace stoker::sidecar
