#include "sidecar/core/sampling/party_scans.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

namespace stoker::sidecar {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kCount = 1000;
constexpr Party kGuest{1};
constexpr Party kOtherGuest{2};

class PartyScansTest : public testing::Test {
protected:
    SharedScan* find_or_make(Party party) { return scans.find_or_make(party, limits, 7); }

    SharedScan& scan(Party party) { return *find_or_make(party); }

    SharedScan::Reader begin(Party party, std::vector<SampleIndex> share = {}) {
        const SharedScan::Reader reader = scan(party).join().value();
        if (share.empty()) {
            share.resize(kCount);
            std::iota(share.begin(), share.end(), 0U);
        }
        scan(party).begin(reader, share);
        return reader;
    }

    [[nodiscard]] std::vector<SampleIndex> victims(Party party, bool urgent = false) const {
        std::vector<SampleIndex> samples;
        scans.victims({.party = party, .urgent = urgent, .count = kCount}, samples);
        return samples;
    }

    ScanLimits limits{.window_samples = 40};
    PartyScans scans{kCount};
};

TEST_F(PartyScansTest, AGuestsReadersAreLimitedAndTakeNoneOfTheOwnPartys) {
    for (std::uint32_t i = 0; i < PartyScans::kGuestReadersMax; ++i) {
        EXPECT_TRUE(scan(kGuest).join().has_value());
    }
    EXPECT_FALSE(scan(kGuest).join().has_value());
    EXPECT_TRUE(scan(kOtherGuest).join().has_value());
    for (std::uint32_t i = 0; i < NeedIndex::kReadersMax; ++i) {
        EXPECT_TRUE(scan(kOwnParty).join().has_value()) << i;
    }
}

TEST_F(PartyScansTest, LimitsTheNumberOfGuestScansWithReaders) {
    for (std::uint8_t guest = 1; guest <= PartyScans::kGuestsMax; ++guest) {
        begin(Party{guest});
    }
    EXPECT_EQ(find_or_make(Party{100}), nullptr);
    EXPECT_NE(find_or_make(kOwnParty), nullptr);
    scan(kGuest).leave(0);
    EXPECT_NE(find_or_make(Party{100}), nullptr);
    EXPECT_FALSE(scans.has(kGuest));
}

// The guest draws as fast as it can, over several epochs.
TEST_F(PartyScansTest, GuestsDrawsDoNotChangeTheOwnPartysFetches) {
    SharedScan alone{kCount, limits, 7};
    const auto reader = alone.join().value();
    alone.begin(reader);
    const auto own = begin(kOwnParty);
    const auto guest = begin(kGuest);
    Prng prng{3};
    Prng same{3};
    Prng guests{4};
    for (int draw = 0; draw < 500; ++draw) {
        for (int i = 0; i < 50; ++i) {
            if (!scan(kGuest).draw(guest, guests)) {
                scan(kGuest).begin(guest);
            }
        }
        ASSERT_EQ(scan(kOwnParty).draw(own, prng), alone.draw(reader, same));
        ASSERT_EQ(scan(kOwnParty).feed(), alone.feed());
    }
}

TEST_F(PartyScansTest, KeepsSamplesThatAnyPartyNeeds) {
    begin(kOwnParty, {1});
    begin(kGuest, {2});
    EXPECT_TRUE(scans.keeps(1));
    EXPECT_TRUE(scans.keeps(2));
    EXPECT_FALSE(scans.keeps(3));
}

TEST_F(PartyScansTest, OwnPartysPrefetchEvictsAGuestsLookahead) {
    begin(kOwnParty, {1, 2});
    begin(kGuest, {2, 3});
    for (const SampleIndex sample : {1, 2, 3}) {
        scans.on_stored(sample, false);
    }
    EXPECT_THAT(victims(kOwnParty), ElementsAre(3)) << "the others are the own lookahead";
    EXPECT_THAT(victims(kGuest), IsEmpty());
    EXPECT_THAT(victims(kOtherGuest), ElementsAre(3));
    EXPECT_THAT(victims(kOwnParty, true), Contains(3));
}

TEST_F(PartyScansTest, LookaheadGoesOnIfTheWindowIsFullOfDrawnSamples) {
    const auto own = begin(kOwnParty);
    const auto guest = begin(kGuest);
    Prng prng{3};
    for (SampleIndex sample = 0; sample < 40; ++sample) {
        scans.on_stored(sample, false);
        scan(kOwnParty).mark_read(own, sample);
        scan(kGuest).mark_read(guest, sample);
    }
    scans.on_stored(40, false);
    scan(kOwnParty).mark_read(own, 40);
    EXPECT_GE(scan(kOwnParty).feed().size(), 5U) << "the window is full of what was drawn";
}

TEST_F(PartyScansTest, FindsVictimsBehindManyNonEvictableSamples) {
    constexpr std::uint32_t kMany = 3 * SharedScan::kVictimLooksMax;
    SharedScan many{kMany, {.window_samples = 4}, 7};
    many.begin(many.join().value());
    for (SampleIndex sample = 0; sample < kMany; ++sample) {
        many.on_stored(sample, false);
    }
    std::uint32_t looks = 0;
    RoomRequest room;
    SampleIndex last = 0;
    room.may_go = [&](SampleIndex sample) {
        ++looks;
        last = sample;
        return false;
    };
    std::vector<SampleIndex> found;
    std::set<SampleIndex> lasts;
    for (int call = 0; call < 3; ++call) {
        looks = 0;
        many.victims(room, found);
        EXPECT_LE(looks, SharedScan::kVictimLooksMax);
        lasts.insert(last);
    }
    EXPECT_EQ(lasts.size(), 3U) << "each call goes on behind the last one";
}

// Jobs of different parties. The window has room for a fifth of the dataset, and no sample is
// resident. A sample that a scan wants to fetch (feed()) is stored at once.
class PartyWorld {
public:
    explicit PartyWorld(const std::vector<double>& speeds) {
        for (std::uint8_t number = 0; number < speeds.size(); ++number) {
            const Party party{number};
            SharedScan* scan = scans_.find_or_make(party, {.window_samples = kWindow}, 7);
            jobs_.push_back({party, scan, scan->join().value(), Prng{number}, speeds[number]});
        }
    }

    // Share of the dataset fetched per job and epoch, without the first epoch.
    double run() {
        std::uint64_t before = 0;
        std::uint64_t drawn = 0;
        for (std::uint64_t batch = 0; jobs_[0].epochs < 6; ++batch) {
            Job& job = *std::ranges::min_element(jobs_, {}, &Job::next_at);
            job.next_at += 1 / job.speed;
            const bool measures = jobs_[0].epochs >= 2;
            before = measures ? before : fetches_;
            for (int i = 0; i < 50; ++i) {
                draw(job);
                drawn += measures ? 1 : 0;
            }
        }
        return static_cast<double>(fetches_ - before) / static_cast<double>(drawn);
    }

private:
    static constexpr std::uint32_t kSamples = 2000;
    static constexpr std::uint32_t kWindow = kSamples / 5;

    struct Job {
        Party party;
        SharedScan* scan = nullptr;
        SharedScan::Reader reader = 0;
        Prng prng;
        double speed = 1;
        double next_at = 0;
        int epochs = 0;
    };

    void draw(Job& job) {
        auto sample = job.epochs == 0 ? std::nullopt : job.scan->draw(job.reader, job.prng);
        if (!sample) {
            ++job.epochs;
            job.scan->begin(job.reader);
            fetch_all();
            sample = job.scan->draw(job.reader, job.prng);
        }
        fetch(*sample, {job.party, true});
        drop_useless(*sample);
        fetch_all();
    }

    void fetch_all() {
        for (bool more = true; std::exchange(more, false);) {
            for (Job& job : jobs_) {
                if (job.epochs > 0 && !job.scan->feed().empty()) {
                    more = fetch(job.scan->feed().front(), {job.party, false}) || more;
                }
            }
        }
    }

    bool fetch(SampleIndex sample, const RoomRequest& room) {
        std::vector<SampleIndex> victims;
        if (!stored_[sample] && in_window_ == kWindow) {
            scans_.victims(room, victims);
            if (victims.empty()) {
                fetches_ += room.urgent ? 1 : 0;  // bypasses the cache
                return false;
            }
            drop(victims[0]);
        }
        if (!stored_[sample]) {
            stored_[sample] = true;
            ++in_window_;
            ++fetches_;
            scans_.on_stored(sample, false);
        }
        return true;
    }

    void drop_useless(SampleIndex sample) {
        if (stored_[sample] && !scans_.keeps(sample)) {
            drop(sample);
        }
    }

    void drop(SampleIndex sample) {
        stored_[sample] = false;
        --in_window_;
        scans_.on_gone(sample);
    }

    PartyScans scans_{kSamples};
    std::vector<Job> jobs_;
    std::vector<bool> stored_ = std::vector<bool>(kSamples);
    std::uint32_t in_window_ = 0;
    std::uint64_t fetches_ = 0;
};

// For comparison: if all parties shared one scan, they would fetch .505, .339, .610 and .382 of a
// dataset of 5,000 samples per job and epoch.
TEST(PartyScansTraffic, PartiesReadSamplesFetchedForOthers) {
    EXPECT_LE(PartyWorld({1, 1}).run(), 0.55);
    EXPECT_LE(PartyWorld({1, 1, 1}).run(), 0.37);
    EXPECT_LE(PartyWorld({1, 0.5}).run(), 0.66);
    EXPECT_LE(PartyWorld({1, 0.5, 0.7}).run(), 0.47);
}

}  // namespace
}  // namespace stoker::sidecar
