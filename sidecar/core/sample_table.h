#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "common/base/bytes.h"
#include "common/domain/residency_word.h"
#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/eviction/party.h"
#include "sidecar/core/placement.h"
#include "sidecar/core/residency.h"
#include "sidecar/core/sample_sizes.h"
#include "sidecar/core/stream_plan.h"

namespace stoker::sidecar {

enum class SampleState : std::uint8_t {
    kAbsent,    // not on this node
    kFetching,  // in flight from its source or into the store; its bytes are reserved
    kStored,    // readable by clients
    kRefused,   // missing or changed at the origin: not read there for a while
};

// How a sample is fetched.
struct FetchWay {
    bool from_peer = false;  // from another node; false: from the origin
    bool slotless = false;   // uses another sample's slot; or is fetched in parts
    bool in_parts = false;   // in byte ranges: only the parts in flight are in memory
};

// State of one sample in the engine; takes 12 bytes.
struct SampleRecord {
    std::uint32_t needs = 0;  // unread positions of all streams' plans, next epoch included
    std::uint32_t holds = 0;  // answered demand fetches not yet released
    SampleState state : 2 = SampleState::kAbsent;
    domain::SegmentClass segment_class : 3 =
        domain::SegmentClass::kAbsent;  // while fetching and stored
    bool from_peer : 1 = false;         // while fetching and stored: not fetched from the origin
    bool slotless : 1 = false;          // while fetching: FetchWay::slotless, or after give_slot()
    bool in_parts : 1 = false;          // while fetching: FetchWay::in_parts
    Party party = kOwnParty;            // see charged_to()
    std::uint8_t failures = 0;          // failed prefetches since the last success; saturates
    bool demanded : 1 = false;          // a demand fetch waits for it
    bool doomed : 1 = false;            // resident beyond the grant; stays while held
    bool verifying : 1 = false;         // its checksum is being verified
    bool spare : 1 = false;             // listed as an evictable window sample
    bool fresh : 1 = false;             // not read since it was fetched
    std::uint8_t refusals : 3 = 0;      // refusals by the origin since the last success; saturates

    // Whether the sample counts against the grant, stored or in flight.
    [[nodiscard]] bool is_granted() const {
        return segment_class == domain::SegmentClass::kResident && !doomed;
    }

    // Whether the sample is stored, and no client holds, awaits or verifies it.
    [[nodiscard]] bool is_idle() const {
        return state == SampleState::kStored && holds == 0 && !demanded && !verifying;
    }
};

static_assert(sizeof(SampleRecord) == 12);

struct ByteAccount {
    Bytes resident{};   // record bytes of class resident, stored or reserved, except doomed ones
    Bytes window{};     // the same for class window
    Bytes doomed{};     // residents beyond a shrunken grant that a client still holds
    Bytes in_flight{};  // payload bytes in memory or being fetched, except of fetches in parts
    std::uint32_t in_flight_samples = 0;
    std::uint64_t resident_samples = 0;  // stored only
    std::uint64_t window_samples = 0;    // stored only

    bool operator==(const ByteAccount&) const = default;
};

// A number of samples and their payload bytes.
struct SampleSum {
    std::uint64_t samples = 0;
    Bytes bytes{};

    bool operator==(const SampleSum&) const = default;
};

// The state of every sample of one revision on one node, and the byte sums derived from it. Reports
// to the eviction policy which samples start or stop counting against the grant. Transitions keep
// the sums exact; a transition from a wrong state is a bug and crashes. Not thread-safe.
class SampleTable final : public Residency {
public:
    // `eviction` nullptr: NeverEvict.
    explicit SampleTable(
        const SampleSizes& sizes, std::unique_ptr<EvictionPolicy> eviction = nullptr);

    // Sets the listener that is called for each sample stored or removed. Not owned.
    void set_listener(ResidencyListener* listener) { listener_ = listener; }

    // Replaces the policy; the new one receives all residents.
    void set_eviction(std::unique_ptr<EvictionPolicy> eviction);

    [[nodiscard]] EvictionPolicy& eviction() { return *eviction_; }

    // Replaces the owners of the samples; nullptr: every sample is own.
    void set_placement(std::shared_ptr<const Placement> placement);

    // The owners of the samples; nullptr: every sample is own.
    [[nodiscard]] const Placement* placement() const { return placement_.get(); }

    [[nodiscard]] bool is_own(SampleIndex sample) const {
        return placement_ == nullptr || placement_->is_own(sample);
    }

    // Record bytes of own samples that are not resident. Zero without a placement.
    [[nodiscard]] Bytes own_missing() const {
        return placement_ == nullptr ? Bytes::zero() : placement_->own_bytes() - own_resident_;
    }

    // The samples that the node owns.
    [[nodiscard]] SampleSum own() const;

    // The samples that the node owns and has stored as residents.
    [[nodiscard]] const SampleSum& own_stored() const { return own_stored_; }

    [[nodiscard]] const SampleSizes& sizes() const { return sizes_; }

    [[nodiscard]] std::uint64_t size() const { return records_.size(); }

    [[nodiscard]] const ByteAccount& account() const { return account_; }

    // The samples that are being fetched in parts, in order of start().
    [[nodiscard]] const std::vector<SampleIndex>& parted() const { return parted_; }

    [[nodiscard]] SampleRecord& at(SampleIndex sample) { return records_[sample]; }

    [[nodiscard]] const SampleRecord& at(SampleIndex sample) const { return records_[sample]; }

    [[nodiscard]] bool is_stored(SampleIndex sample) const override {
        return records_[sample].state == SampleState::kStored;
    }

    void expect(SampleIndex sample) const override { __builtin_prefetch(&records_[sample], 1); }

    [[nodiscard]] bool is_kept(SampleIndex sample) const override {
        return records_[sample].segment_class == domain::SegmentClass::kResident;
    }

    [[nodiscard]] Bytes payload_bytes(SampleIndex sample) const { return sizes_.of(sample); }

    // The sample's size in a segment, header and padding included.
    [[nodiscard]] Bytes record_bytes(SampleIndex sample) const;

    // absent → stored, for samples that the store found when it opened.
    void adopt(SampleIndex sample, domain::SegmentClass segment_class);

    // Window record bytes charged to the party, including its fetches in flight.
    [[nodiscard]] Bytes window_of(Party party) const { return charges_[party.value()].window; }

    [[nodiscard]] std::uint32_t in_flight_of(Party party) const {
        return charges_[party.value()].in_flight_samples;
    }

    // Fetches in flight that take a slot.
    [[nodiscard]] std::uint32_t slots_of(Party party) const {
        return charges_[party.value()].slots;
    }

    // Fetches in flight of all parties that take a slot.
    [[nodiscard]] std::uint32_t slots() const { return slots_; }

    // Frees the slot of the sample's fetch, which must have a slot.
    void give_slot(SampleIndex sample);

    // Assigns a slot to the sample's fetch, which must have none; ignores the limits.
    void take_slot(SampleIndex sample);

    // Payload bytes of the party's fetches in flight, without those in parts.
    [[nodiscard]] Bytes in_flight_bytes_of(Party party) const {
        return charges_[party.value()].in_flight;
    }

    // absent → fetching: reserves bytes of the class and of memory.
    void start(
        SampleIndex sample,
        domain::SegmentClass segment_class,
        Party party = kOwnParty,
        FetchWay way = {});

    // The party whose share the sample uses: the one that it was fetched for, or the own party
    // after charge_to_owner(). Residents are charged to the own party, whose namespace owns the
    // grant.
    [[nodiscard]] Party charged_to(SampleIndex sample) const;

    // Charges the sample to the own party. Only for a stored window sample; from now on it counts
    // as fetched for no party.
    void charge_to_owner(SampleIndex sample);

    // Whether charge_to_owner() was called for the sample since it was fetched.
    [[nodiscard]] bool was_passed(SampleIndex sample) const { return passed_.contains(sample); }

    // Whether was_passed() is true for any sample.
    [[nodiscard]] bool has_passed() const { return !passed_.empty(); }

    // fetching → stored.
    void finish(SampleIndex sample);

    // absent → refused.
    void refuse(SampleIndex sample);

    // refused → absent.
    void end_refusal(SampleIndex sample);

    // fetching or stored → absent.
    void remove(SampleIndex sample);

    // A resident (stored or in flight) stops counting against the grant until it is removed.
    void doom(SampleIndex sample);

    // Whether to drop the sample: it is doomed, or a stored window sample that no plan needs; and
    // no client holds, awaits or verifies it.
    [[nodiscard]] bool is_superfluous(SampleIndex sample) const;

private:
    struct Charge {
        Bytes window{};
        Bytes in_flight{};
        std::uint32_t in_flight_samples = 0;
        std::uint32_t slots = 0;
    };

    Bytes& class_bytes(const SampleRecord& record);
    void add_bytes(SampleIndex sample);
    void take_bytes(SampleIndex sample);
    std::uint64_t& stored_count(const SampleRecord& record);
    void count_stored(SampleIndex sample);
    void uncount_stored(SampleIndex sample);
    [[nodiscard]] bool is_own_stored(SampleIndex sample) const;
    void leave_flight(SampleIndex sample);
    void tell_stored(SampleIndex sample);

    SampleSizes sizes_;
    std::unique_ptr<EvictionPolicy> eviction_;
    ResidencyListener* listener_ = nullptr;
    std::vector<SampleRecord> records_;
    std::unordered_set<SampleIndex> passed_;  // samples that were charged to another party before
    std::vector<SampleIndex> parted_;
    ByteAccount account_;
    std::shared_ptr<const Placement> placement_;
    Bytes own_resident_{};  // record bytes of own samples that are granted; only with a placement
    SampleSum own_stored_;
    std::array<Charge, kPartiesMax> charges_{};
    std::uint32_t slots_ = 0;  // slots of all parties
};

}  // namespace stoker::sidecar
