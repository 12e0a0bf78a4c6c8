#pragma once

#include <cstdint>

#include "common/base/clock.h"

// How many requests to the origin are useful at a time. Pure: times are arguments. One owner.
namespace stoker::sidecar {

// Searches for the knee of the throughput curve: the fewest requests in flight that reach the
// highest throughput which the link, the origin or this machine allows.
//
// It measures in rounds. After a change of the limit, a round begins when the first request that was
// sent since has arrived: queues have then adapted. It counts requests that began and succeeded in
// it, and ends with enough of them. By Little's law
//   throughput = mean requests in flight * work done / time that the requests took,
// which bursts of answers do not falsify. Work is bytes plus a constant for each request. A round in
// which less than half of the limit was in flight says nothing: something else was the bottleneck.
//
//   - A search begins at `first`: it doubles the limit while throughput grows by half, then adds
//     quarters while it grows by 2 %, and then goes down as below. A doubling is kept only if
//     throughput grows by a tenth.
//   - Later it holds the limit for some rounds and tries a quarter more or a fifth less for one
//     round, in turns. More is kept if throughput grows by 2 % and by twice the noise of
//     rounds, at most by 10 %. If a fifth less loses less than 1 %, half of that step is taken, so
//     that the limit stays a little above the knee.
//   - A try that fails doubles the pause to the next one. A throughput that differs by
//     15 % in two rounds of one limit begins a search there.
//   - Push-backs (503, 429, time-outs, lost connections) within a round, more than four of them and
//     more than 5 % of the limit or of the round's requests, take the limit back to that before the
//     try, or else multiply it by 0.7, at most once per round. Fewer happen at any load, and while
//     less than half of the limit is in flight they say nothing about it. After a round without
//     them it grows again.
class ConcurrencyLimit {
public:
    struct Limits {
        std::uint32_t first = 64;
        std::uint32_t max = 512;
        std::uint32_t searched_min = 16;  // limits below it are used only after push-backs
        std::uint32_t min = 4;            // lowest limit after push-backs
        Duration round_min = std::chrono::milliseconds{200};
        Duration round_long = std::chrono::seconds{2};  // a round this long needs fewer requests
        std::uint32_t pause_min = 8;                    // shortest pause between tries, in rounds
        std::uint32_t pause_max = 64;
    };

    // A request in flight. Its holder passes it to on_arrived() or on_push_back().
    struct Ticket {
        std::uint64_t round = 0;
        TimePoint started_at{};
    };

    // Limits above `max` are lowered to it; `max` is at least 1.
    explicit ConcurrencyLimit(Limits limits);

    // Requests that may be in flight now; from 1 to `max`.
    [[nodiscard]] std::uint32_t limit() const { return limit_; }

    Ticket on_started(TimePoint now);

    // Call when all bytes of the request have arrived.
    void on_arrived(const Ticket& ticket, std::uint64_t bytes, TimePoint now);

    // Call when the request has failed for good, or is no longer wanted.
    void on_abandoned(TimePoint now) { set_in_flight(in_flight_ - 1, now); }

    // Call when an attempt of the request was rejected by an overloaded origin, or got no answer.
    // The request stays in flight.
    void on_push_back(const Ticket& ticket, TimePoint now);

private:
    enum class Phase : std::uint8_t { kHold, kMore, kLess };

    void set_in_flight(std::uint32_t in_flight, TimePoint now);
    void begin_round(std::uint32_t limit, Phase phase, TimePoint now);
    void begin_measuring(TimePoint now);
    void end_round(TimePoint now);
    void end_hold(double throughput, TimePoint now);
    void note_base(double throughput);
    void end_more(double throughput, TimePoint now);
    void end_less(double throughput, TimePoint now);
    void end_climb(TimePoint now);
    void hold_after_failed_try(TimePoint now);
    void try_more(TimePoint now);
    void try_less(TimePoint now);
    [[nodiscard]] bool has_enough(TimePoint now) const;

    Limits limits_;
    std::uint32_t limit_;
    std::uint32_t in_flight_ = 0;

    // The round.
    Phase phase_ = Phase::kHold;
    bool is_settling_ = true;
    std::uint64_t first_round_ = 0;  // first round at the present limit
    std::uint64_t round_ = 0;        // changes while queues settle, too
    TimePoint measured_from_{};
    TimePoint counted_at_{};      // time up to which request_seconds_ has counted
    double request_seconds_ = 0;  // integral of in_flight_
    std::uint32_t arrived_ = 0;   // requests of this round
    double arrived_seconds_ = 0;  // summed duration of these requests
    double arrived_work_ = 0;     // in bytes
    std::uint32_t push_backs_ = 0;

    // The search.
    std::uint32_t base_;                // the limit that is held
    double base_throughput_ = 0;        // throughput at base_; 0: not measured yet
    double noise_ = 0;                  // mean relative deviation of a round from base_throughput_
    std::uint32_t changed_rounds_ = 0;  // rounds in a row that deviate too much to be noise
    double growth_ = 2;                 // factor for the next larger limit
    bool climbing_ = true;              // the next round tries a larger limit without a pause
    bool less_is_next_ = true;
    std::uint32_t pause_;  // rounds between tries
    std::uint32_t pause_left_;
};

}  // namespace stoker::sidecar
