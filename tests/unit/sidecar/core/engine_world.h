#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/base/prng.h"
#include "sidecar/core/fetch_engine.h"
#include "tests/support/dataset.h"
#include "tests/unit/sidecar/core/eviction/audited_policy.h"

namespace stoker::test {

// A toy world around a FetchEngine: an origin, a store and clients, all driven by one seed. It
// tracks separately which samples are stored, held, needed and requested, and fails the running
// test (gtest) when the engine breaks a guarantee.
class EngineWorld {
public:
    // nullptr: the default policy. Otherwise the world checks each call of `eviction`.
    EngineWorld(std::uint64_t seed, std::unique_ptr<sidecar::EvictionPolicy> eviction);

    // One random event of a client, the origin, the disk, the operator or the clock.
    void step();

    // From now on some clients belong to two guests, which hold only samples fetched for them.
    void invite_guests() { has_guests_ = true; }

    // The samples lie in chunks, and some streams read groups of them. Only before the first event.
    void lay_in_chunks();

    // From now on the node joins and leaves groups of peers, which send it samples that they own.
    void join_groups() { has_groups_ = true; }

    // From now on the origin and the disk do not fail.
    void heal() { faults_ = false; }

    // Finishes all work in flight and lets time pass until nothing more happens. Then every demand
    // is answered, and all planned samples that fit are stored.
    void settle();

    // Disconnects all clients; afterwards only residents may be stored.
    void end();

private:
    struct Stored {
        domain::SegmentClass segment_class = domain::SegmentClass::kAbsent;
        bool is_for_guest = false;  // fetched for a guest
    };

    struct Request {
        std::uint64_t id = 0;
        std::vector<sidecar::SampleIndex> samples;
        std::set<sidecar::SampleIndex> lost;  // samples lost while the request was open
    };

    struct Client {
        std::optional<sidecar::StreamId> stream;
        sidecar::Party party = sidecar::kOwnParty;
        std::vector<Request> pending;
        std::multiset<sidecar::SampleIndex> held;
        std::multiset<sidecar::SampleIndex> lost;  // damaged, or no longer held by the engine
    };

    struct Plan {
        std::uint64_t epoch = 0;
        std::vector<sidecar::SampleIndex> samples;
        std::vector<bool> read;
        std::vector<sidecar::SampleIndex> ahead;  // the plan's first samples of the next epoch
    };

    using ClientEntry = std::pair<const sidecar::ConnectionId, Client>;

    // Events.
    void connect();
    void disconnect(sidecar::ConnectionId id);
    void make_plan(ClientEntry& client);
    void fetch(ClientEntry& client);
    void consume(ClientEntry& client);
    void finish_fetch();
    void finish_verify();
    void lose(sidecar::SampleIndex sample);
    void change_grant();
    void change_group();
    void pass_time();

    // Executes the engine's effects, and checks that each is permitted.
    void apply(const sidecar::Effects& effects, bool grant_changed = false);
    // Call it before the drops: ends the holds that the engine has ended.
    void end_holds();
    void apply_drop(sidecar::SampleIndex sample);
    std::unique_ptr<sidecar::EvictionPolicy> audited(
        std::unique_ptr<sidecar::EvictionPolicy> eviction);
    void apply_fetch(const sidecar::StartFetch& fetch);
    void apply_reply(const sidecar::FetchReply& reply);
    void check_bytes() const;
    // Call it when the fetch has begun.
    void check_slots(const sidecar::StartFetch& fetch) const;
    void check_guests() const;
    void check_prefetched() const;

    // Window samples that clients of the own party may hold.
    [[nodiscard]] std::set<sidecar::SampleIndex> own_holds() const;
    [[nodiscard]] Bytes own_part() const;
    [[nodiscard]] bool is_needed(sidecar::SampleIndex sample) const;
    [[nodiscard]] bool is_held(sidecar::SampleIndex sample) const;
    [[nodiscard]] Bytes record_bytes(sidecar::SampleIndex sample) const;

    [[nodiscard]] std::uint64_t count() const { return dataset_.manifest().sample_count(); }

    sidecar::SampleIndex any_sample();
    std::vector<sidecar::SampleIndex> any_order();
    ClientEntry* any_client();

    bool chance(std::uint64_t percent) { return prng_.below(100) < percent; }

    Prng prng_;
    Dataset dataset_;
    sidecar::EngineLimits limits_;
    AuditedPolicy* audit_ = nullptr;  // owned by the engine
    sidecar::SampleChunks chunks_;
    sidecar::FetchEngine engine_;
    TimePoint now_{std::chrono::seconds{1}};
    bool faults_ = true;
    bool has_guests_ = false;
    bool has_groups_ = false;
    std::uint64_t last_request_ = 0;
    std::uint64_t last_connection_ = 0;
    std::uint64_t last_epoch_ = 0;
    std::map<sidecar::ConnectionId, Client> clients_;
    std::map<sidecar::StreamId, Plan> plans_;
    std::map<sidecar::SampleIndex, Stored> stored_;
    std::map<sidecar::SampleIndex, Stored> in_flight_;
    std::set<sidecar::SampleIndex> stopping_;  // of these
    std::set<sidecar::SampleIndex> verifying_;
    std::map<sidecar::SampleIndex, TimePoint> refused_;  // time of the last refusal
    sidecar::EngineCounters seen_;                       // counters after the last event
    Bytes doomed_before_{};
};

}  // namespace stoker::test
