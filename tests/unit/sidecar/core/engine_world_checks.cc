// Invariants that an EngineWorld checks on its engine between two events.
#include <algorithm>

#include <gtest/gtest.h>

#include "common/domain/segment_format.h"
#include "tests/unit/sidecar/core/engine_world.h"

namespace stoker::test {

using domain::SegmentClass;
using sidecar::SampleIndex;

// Compares the engine's sums with our own, to the byte.
void EngineWorld::check_bytes() const {
    Bytes resident;
    Bytes window;
    Bytes loose;  // record bytes of residents that may have lost their grant
    Bytes payload;
    for (const auto* samples : {&stored_, &in_flight_}) {
        for (const auto& [sample, where] : *samples) {
            const bool is_resident = where.segment_class == SegmentClass::kResident;
            (is_resident ? resident : window) += record_bytes(sample);
            if (is_resident && (samples == &in_flight_ || is_held(sample) ||
                                engine_.sample(sample).holds > 0 || verifying_.contains(sample))) {
                loose += record_bytes(sample);
            }
        }
    }
    std::size_t parted = 0;
    for (const auto& [sample, where] : in_flight_) {
        if (engine_.sample(sample).in_parts) {
            ++parted;
        } else {
            payload += Bytes{dataset_.manifest().size_bytes(domain::SampleId{sample})};
        }
    }
    const auto& account = engine_.account();
    EXPECT_EQ(account.resident + account.doomed, resident);
    if (audit_ != nullptr) {
        EXPECT_EQ(account.resident, audit_->total());
    }
    EXPECT_EQ(account.window, window);
    EXPECT_EQ(account.in_flight, payload);
    EXPECT_EQ(account.in_flight_samples, in_flight_.size());
    EXPECT_EQ(engine_.parted().size(), parted);
    EXPECT_LE(parted, sidecar::kPartedMax + 1);
    EXPECT_LE(account.resident, engine_.grant().resident_bytes);
    EXPECT_LE(account.window, limits_.window);
    EXPECT_LE(account.doomed, loose);
    const Bytes in_parts = parted > 0 ? limits_.parts_memory() : Bytes::zero();
    EXPECT_TRUE(account.in_flight + in_parts <= limits_.memory || in_flight_.size() <= 1);
}

void EngineWorld::apply_fetch(const sidecar::StartFetch& fetch) {
    EXPECT_FALSE(stored_.contains(fetch.sample)) << "fetches what is here: " << fetch.sample;
    const auto refused = refused_.find(fetch.sample);
    EXPECT_TRUE(refused == refused_.end() || now_ - refused->second >= sidecar::Refusals::kFirst)
        << "asks again for what was refused";
    const bool is_for_guest = engine_.sample(fetch.sample).party != sidecar::kOwnParty;
    EXPECT_TRUE(in_flight_.emplace(fetch.sample, Stored{fetch.segment_class, is_for_guest}).second)
        << "two fetches of sample " << fetch.sample << " in flight";
    check_slots(fetch);
    if (fetch.in_parts && chance(80)) {
        engine_.take_part(fetch.sample, engine_.sizes().of(fetch.sample), now_);
    }
}

void EngineWorld::check_slots(const sidecar::StartFetch& fetch) const {
    const auto in_slots = std::ranges::count_if(
        in_flight_, [this](const auto& entry) { return !engine_.sample(entry.first).slotless; });
    const auto in_parts = std::ranges::count_if(
        in_flight_, [this](const auto& entry) { return engine_.sample(entry.first).in_parts; });
    EXPECT_LE(in_slots, limits_.max_in_flight * 2) << "own party's and guests' slots";
    EXPECT_TRUE(!chunks_.is_empty() || std::ssize(in_flight_) == in_slots + in_parts);
    const sidecar::Placement* placement = engine_.placement();
    const Bytes payload{dataset_.manifest().size_bytes(domain::SampleId{fetch.sample})};
    const bool is_foreign = placement != nullptr && !placement->is_own(fetch.sample);
    if (limits_.takes_parts(payload)) {
        EXPECT_FALSE(fetch.from_peer && (!is_foreign || payload > limits_.memory));
    } else {
        EXPECT_EQ(fetch.from_peer, is_foreign);
    }
    EXPECT_EQ(fetch.in_parts, !fetch.from_peer && limits_.takes_parts(payload));
    EXPECT_FALSE(fetch.from_peer && engine_.sample(fetch.sample).slotless)
        << "peers' answers take a slot each";
}

// A quarter of the window is for the dataset's own namespace only: guests never fill it.
void EngineWorld::check_guests() const {
    Bytes of_guests;
    for (const auto* samples : {&stored_, &in_flight_}) {
        for (const auto& [sample, where] : *samples) {
            const bool is_theirs = engine_.sample(sample).party != sidecar::kOwnParty;
            if (is_theirs && where.segment_class == SegmentClass::kWindow) {
                of_guests += record_bytes(sample);
            }
        }
    }
    EXPECT_LE(of_guests, limits_.window - Bytes{limits_.window.count() / 4});
}

std::set<SampleIndex> EngineWorld::own_holds() const {
    std::set<SampleIndex> holds;
    for (const auto& [id, client] : clients_) {
        if (client.party == sidecar::kOwnParty) {
            holds.insert(client.held.begin(), client.held.end());
            holds.insert(client.lost.begin(), client.lost.end());
            for (const Request& request : client.pending) {
                holds.insert(request.samples.begin(), request.samples.end());
            }
        }
    }
    std::erase_if(holds, [this](SampleIndex sample) {
        const auto found = stored_.find(sample);
        return found == stored_.end() || found->second.segment_class != SegmentClass::kWindow;
    });
    return holds;
}

// The own party's share of the window: half of it beside guests, plus the bytes it has borrowed.
Bytes EngineWorld::own_part() const {
    const bool has_guests = std::ranges::any_of(
        clients_, [](const auto& entry) { return entry.second.party != sidecar::kOwnParty; });
    return engine_.window() - (has_guests
                                   ? Bytes{limits_.window.count() - limits_.window.count() / 2}
                                   : Bytes::zero());
}

// Notes that no client holds the sample any longer: a client about to be told "ready" may miss it.
void EngineWorld::lose(SampleIndex sample) {
    for (auto& [id, client] : clients_) {
        if (client.held.erase(sample) > 0) {
            client.lost.insert(sample);
        }
        for (Request& request : client.pending) {
            request.lost.insert(sample);
        }
    }
}

// If clients of the own party hold more than its part of the window, they lose samples that were
// fetched for guests.
void EngineWorld::end_holds() {
    Bytes left;
    Bytes largest;
    bool some_ended = false;
    std::vector<SampleIndex> lost;
    for (const SampleIndex sample : own_holds()) {
        const bool ended = engine_.sample(sample).holds == 0 && stored_.at(sample).is_for_guest;
        if (!ended) {
            left += record_bytes(sample);
            continue;
        }
        largest = std::max(largest, record_bytes(sample));
        some_ended = some_ended || is_held(sample);
        lost.push_back(sample);
    }
    const bool is_beyond = left + largest > own_part();
    EXPECT_TRUE(is_beyond || !some_ended) << "ends a hold though the owner's holds fit";
    for (const SampleIndex sample : is_beyond ? lost : std::vector<SampleIndex>{}) {
        lose(sample);
    }
}

// When idle: no planned sample is missing if the largest sample would fit.
void EngineWorld::check_prefetched() const {
    constexpr int kGivenUp = 3;  // failures after which a sample is no longer prefetched
    const Bytes largest{domain::record_bytes(dataset_.manifest().largest_sample_bytes())};
    if (has_guests_ || engine_.account().window + largest > limits_.window) {
        return;
    }
    const Bytes all = limits_.window + engine_.grant().resident_bytes;
    const Bytes used = engine_.account().window + engine_.account().resident;
    if (!chunks_.is_empty() && all - used < Bytes{all.count() / 4}) {
        return;  // a chunk waits for more room
    }
    for (SampleIndex sample = 0; sample < count(); ++sample) {
        const Bytes payload{dataset_.manifest().size_bytes(domain::SampleId{sample})};
        if (is_needed(sample) && !refused_.contains(sample) && payload <= limits_.memory &&
            engine_.sample(sample).failures < kGivenUp) {
            EXPECT_TRUE(stored_.contains(sample)) << "nobody prefetches sample " << sample;
        }
    }
}

bool EngineWorld::is_needed(SampleIndex sample) const {
    return std::ranges::any_of(plans_, [sample](const auto& entry) {
        const Plan& plan = entry.second;
        for (std::size_t i = 0; i < plan.samples.size(); ++i) {
            if (plan.samples[i] == sample && !plan.read[i]) {
                return true;
            }
        }
        return std::ranges::find(plan.ahead, sample) != plan.ahead.end();
    });
}

bool EngineWorld::is_held(SampleIndex sample) const {
    return std::ranges::any_of(
        clients_, [sample](const auto& entry) { return entry.second.held.contains(sample); });
}

Bytes EngineWorld::record_bytes(SampleIndex sample) const {
    return Bytes{domain::record_bytes(dataset_.manifest().size_bytes(domain::SampleId{sample}))};
}

}  // namespace stoker::test
