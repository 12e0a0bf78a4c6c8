#include "operator/kube/lease.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kStart{std::chrono::hours{1}};
constexpr WallTime kWall{seconds{1'767'225'600}};

LeaseRecord held_by(const std::string& holder, const std::string& renewed = "r0") {
    return {holder, 15, "a0", renewed, 3};
}

TEST(LeaseMachine, CreatesAMissingLease) {
    LeaseMachine machine("me", {}, 1);
    EXPECT_TRUE(std::holds_alternative<LeaseRead>(machine.step(kStart, kWall)));
    machine.on_absent();
    const auto step = machine.step(kStart, kWall);
    const auto& record = std::get<LeaseCreate>(step).record;
    EXPECT_EQ(
        record,
        (LeaseRecord{"me", 15, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z", 0}));
    EXPECT_FALSE(machine.leads());
    machine.on_written(record, kStart, kStart);
    EXPECT_TRUE(machine.leads());
}

TEST(LeaseMachine, WaitsWhileTheHolderRenews) {
    LeaseMachine machine("me", {}, 1);
    TimePoint now = kStart;
    for (int renewal = 0; renewal < 40; ++renewal) {
        ASSERT_TRUE(std::holds_alternative<LeaseRead>(machine.step(now, kWall)));
        machine.on_read(held_by("other", fmt::format("r{}", renewal)), now);
        const auto step = machine.step(now, kWall);
        const Duration pause = std::get<LeaseWait>(step).until - now;
        EXPECT_GE(pause, seconds{2});
        EXPECT_LE(pause, milliseconds{4400});
        now += pause;
    }
}

TEST(LeaseMachine, TakesOverALeaseUnchangedForItsDuration) {
    LeaseMachine machine("me", {}, 1);
    TimePoint now = kStart;
    while (true) {
        ASSERT_TRUE(std::holds_alternative<LeaseRead>(machine.step(now, kWall)));
        machine.on_read(held_by("other"), now);
        const auto step = machine.step(now, kWall);
        if (const auto* wait = std::get_if<LeaseWait>(&step)) {
            ASSERT_LT(now - kStart, seconds{15});
            now = wait->until;
            continue;
        }
        ASSERT_GE(now - kStart, seconds{15});
        const auto& record = std::get<LeaseUpdate>(step).record;
        EXPECT_EQ(record.holder, "me");
        EXPECT_EQ(record.transitions, 4);
        EXPECT_EQ(record.acquire_time, record.renew_time);
        return;
    }
}

TEST(LeaseMachine, IgnoresTheTimesInTheLease) {
    LeaseMachine machine("me", {}, 1);
    machine.step(kStart, kWall);
    machine.on_read(
        {"other", 15, "1999-01-01T00:00:00.000000Z", "1999-01-01T00:00:00.000000Z", 0}, kStart);
    EXPECT_TRUE(std::holds_alternative<LeaseWait>(machine.step(kStart, kWall)));
}

TEST(LeaseMachine, AcquiresAReleasedLeaseAtOnce) {
    LeaseMachine machine("me", {}, 1);
    machine.step(kStart, kWall);
    machine.on_read(LeaseMachine::released(held_by("other"), kWall), kStart);
    const auto step = machine.step(kStart, kWall);
    EXPECT_EQ(std::get<LeaseUpdate>(step).record.transitions, 4);
}

class Leader : public ::testing::Test {
protected:
    Leader() {
        machine.step(now, kWall);
        machine.on_read(LeaseRecord{}, now);
        const auto step = machine.step(now, kWall);
        record = std::get<LeaseUpdate>(step).record;
        machine.on_written(record, now, now);
    }

    TimePoint now = kStart;
    LeaseMachine machine{"me", {}, 1};
    LeaseRecord record;
};

TEST_F(Leader, RenewsEveryTwoSecondsFromMemory) {
    for (int renewal = 0; renewal < 5; ++renewal) {
        const auto wait = machine.step(now, kWall);
        EXPECT_EQ(std::get<LeaseWait>(wait).until - now, seconds{2});
        now += seconds{2};
        const auto step = machine.step(now, kWall + (now - kStart));
        const LeaseRecord next = std::get<LeaseUpdate>(step).record;
        EXPECT_EQ(next.acquire_time, record.acquire_time);
        EXPECT_NE(next.renew_time, record.renew_time);
        EXPECT_EQ(next.transitions, record.transitions);
        machine.on_written(next, now, now);
    }
}

TEST_F(Leader, ReadsAfterAFailedRenewalThenRetriesEveryTwoSeconds) {
    now += seconds{2};
    machine.step(now, kWall);
    machine.on_failed(now);
    EXPECT_TRUE(std::holds_alternative<LeaseRead>(machine.step(now, kWall)));
    machine.on_read(record, now);
    EXPECT_TRUE(std::holds_alternative<LeaseUpdate>(machine.step(now, kWall)));
    machine.on_failed(now);
    EXPECT_EQ(std::get<LeaseWait>(machine.step(now, kWall)).until, now + seconds{2});
}

TEST_F(Leader, StopsTenSecondsAfterTheStartOfTheLastRenewal) {
    // The renewal's write began at kStart, however long the response took.
    machine.on_written(record, kStart, kStart + seconds{5});
    EXPECT_TRUE(machine.may_write(kStart + milliseconds{9999}));
    EXPECT_FALSE(machine.may_write(kStart + seconds{10}));
    EXPECT_TRUE(std::holds_alternative<LeaseLost>(machine.step(kStart + seconds{10}, kWall)));
    EXPECT_FALSE(machine.leads());
}

TEST_F(Leader, StopsAtOnceIfAnotherHoldsTheLease) {
    now += seconds{2};
    machine.step(now, kWall);
    machine.on_failed(now);
    machine.step(now, kWall);
    machine.on_read(held_by("other"), now);
    const auto step = machine.step(now, kWall);
    EXPECT_NE(std::get<LeaseLost>(step).reason.find("other"), std::string::npos);
    EXPECT_FALSE(machine.may_write(now));
}

TEST(LeaseRecordJson, RoundTripsAndKeepsForeignFields) {
    const Json base =
        Json::parse(
            R"({"metadata":{"resourceVersion":"9","labels":{"a":"b"}},"spec":{"strategy":"OldestEmulationVersion"}})")
            .value();
    const Json lease = write_lease({"ns", "op"}, held_by("me"), &base);
    EXPECT_EQ(read_lease(lease), held_by("me"));
    EXPECT_EQ(string_at(lease.value(), {"metadata", "resourceVersion"}), "9");
    EXPECT_EQ(string_at(lease.value(), {"metadata", "labels", "a"}), "b");
    EXPECT_EQ(string_at(lease.value(), {"spec", "strategy"}), "OldestEmulationVersion");
    EXPECT_EQ(read_lease(Json()), LeaseRecord{});
}

TEST(LeaseTiming, RejectsTimingWithoutRoomForRetries) {
    EXPECT_TRUE(is_valid(LeaseTiming{}));
    EXPECT_FALSE(is_valid(LeaseTiming{seconds{10}, seconds{10}, seconds{2}}));
    EXPECT_FALSE(is_valid(LeaseTiming{seconds{15}, seconds{10}, seconds{9}}));
    EXPECT_FALSE(is_valid(LeaseTiming{seconds{15}, seconds{10}, seconds{0}}));
}

// Simulation: candidates with wrong clocks that pause, lose responses and restart.

struct Candidate {
    std::unique_ptr<LeaseMachine> machine;
    Duration clock_offset{};
    double clock_rate = 1.0;
    TimePoint wakes{};  // paused until then
    std::uint64_t seen_version = 0;
    bool stopped = false;
};

class LeaseWorld {
public:
    explicit LeaseWorld(std::uint64_t seed)
        : prng_(seed) {
        for (int i = 0; i < 3; ++i) {
            Candidate candidate;
            candidate.clock_offset = seconds{static_cast<std::int64_t>(prng_.below(20'000))};
            candidate.clock_rate = 0.9 + 0.2 * prng_.unit();
            restart(candidate);
            candidates_.push_back(std::move(candidate));
        }
    }

    void tick() {
        now_ += milliseconds{100};
        for (Candidate& candidate : candidates_) {
            if (now_ < candidate.wakes) {
                continue;
            }
            if (faulty_ && prng_.below(400) == 0) {
                candidate.wakes = now_ + seconds{static_cast<std::int64_t>(prng_.below(40))};
                continue;
            }
            act(candidate);
            if (candidate.stopped) {
                restart(candidate);
            }
        }
        int writers = 0;
        for (const Candidate& candidate : candidates_) {
            writers += candidate.machine->may_write(local(candidate)) ? 1 : 0;
        }
        ASSERT_LE(writers, 1) << "at " << (now_ - kStart).count();
        writer_ticks_ += writers;
    }

    void heal() { faulty_ = false; }

    [[nodiscard]] int writer_ticks() const { return writer_ticks_; }

    [[nodiscard]] std::int64_t transitions() const { return record_.transitions; }

private:
    [[nodiscard]] TimePoint local(const Candidate& candidate) const {
        const auto elapsed =
            std::chrono::duration_cast<Duration>((now_ - kStart) * candidate.clock_rate);
        return kStart + candidate.clock_offset + elapsed;
    }

    void restart(Candidate& candidate) {
        candidate.machine = std::make_unique<LeaseMachine>(
            fmt::format("candidate-{}", ++identities_), LeaseTiming{}, prng_());
        candidate.stopped = false;
    }

    [[nodiscard]] bool lost() { return faulty_ && prng_.below(5) == 0; }

    void act(Candidate& candidate) {
        const TimePoint at = local(candidate);
        const LeaseStep step = candidate.machine->step(at, kWall);
        if (std::holds_alternative<LeaseLost>(step)) {
            candidate.stopped = true;
        } else if (std::holds_alternative<LeaseRead>(step)) {
            read(candidate, at);
        } else if (const auto* create = std::get_if<LeaseCreate>(&step)) {
            write(candidate, create->record, 0, at);
        } else if (const auto* update = std::get_if<LeaseUpdate>(&step)) {
            write(candidate, update->record, candidate.seen_version, at);
        }
    }

    void read(Candidate& candidate, TimePoint at) {
        if (lost()) {
            candidate.machine->on_failed(at);
        } else if (version_ == 0) {
            candidate.machine->on_absent();
        } else {
            candidate.seen_version = version_;
            candidate.machine->on_read(record_, at);
        }
    }

    // The request may get lost, or its response. A renewal changes the record every time.
    void write(Candidate& candidate, LeaseRecord record, std::uint64_t expected, TimePoint at) {
        record.renew_time = fmt::format("write-{}", ++writes_);
        if (lost() || expected != version_) {
            candidate.machine->on_failed(at);
            return;
        }
        record_ = record;
        ++version_;
        if (lost()) {
            candidate.machine->on_failed(at);
            return;
        }
        candidate.seen_version = version_;
        candidate.machine->on_written(record, at, at);
    }

    Prng prng_;
    TimePoint now_ = kStart;
    std::vector<Candidate> candidates_;
    LeaseRecord record_;
    std::uint64_t version_ = 0;
    std::uint64_t writes_ = 0;
    int identities_ = 0;
    int writer_ticks_ = 0;
    bool faulty_ = true;
};

TEST(LeaseMachine, AtMostOneMayWriteDespiteSkewPausesAndLostMessages) {
    const char* given = std::getenv("STOKER_TEST_SEED");
    const std::uint64_t first = given != nullptr ? std::stoull(given) : 1;
    const std::uint64_t count = given != nullptr ? 1 : 300;
    std::int64_t transitions = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE(fmt::format("STOKER_TEST_SEED={}", seed));
        LeaseWorld world(seed);
        for (int tick = 0; tick < 3000; ++tick) {
            world.tick();
            if (HasFatalFailure()) {
                return;
            }
        }
        transitions += world.transitions();
        world.heal();
        for (int tick = 0; tick < 600; ++tick) {
            world.tick();
        }
        const int before = world.writer_ticks();
        for (int tick = 0; tick < 300; ++tick) {
            world.tick();
        }
        EXPECT_EQ(world.writer_ticks() - before, 300)
            << "somebody leads all the time once it is quiet";
    }
    EXPECT_GT(transitions, static_cast<std::int64_t>(count)) << "the faults did change leaders";
}

}  // namespace
}  // namespace stoker::control
