#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sidecar/core/take_overs.h"
#include "sidecar/service/peer_fetches.h"

namespace stoker::sidecar {

// One peer that PeerFetches asks: its channel, the samples that are awaited from it, and how it
// behaved. Reports to its PeerFetches, which owns it. Use it on the loop's thread.
class PeerLink final : public PeerEvents {
public:
    PeerLink(PeerFetches& fetches, control::PeerMember member);
    PeerLink(const PeerLink&) = delete;
    PeerLink& operator=(const PeerLink&) = delete;
    ~PeerLink() override = default;

    [[nodiscard]] const control::PeerMember& member() const { return member_; }

    // Whether so many of this peer's samples are late that it is asked for only one a second.
    [[nodiscard]] bool is_stalled() const { return late_ >= PeerFetches::kStalledMin; }

    // Whether ask() would take a sample now, as far as is known.
    [[nodiscard]] bool may_ask() const;

    // Asks the peer for the sample with the next flush(); with `take_over`, only if the peer has
    // the sample. False: the sample must go to the origin; the reason is counted.
    [[nodiscard]] bool ask(domain::SampleIndex sample, bool take_over = false);

    // Whether ask() would take over a sample now. Connects to the peer if necessary.
    [[nodiscard]] bool may_take_over();

    // What the peer's answers tell about own samples that it may still have.
    [[nodiscard]] TakeOvers& take_overs() { return take_overs_; }

    // Sends the asks since the last call, as far as kInFlightMax allows.
    void flush();

    // Sends a frame that gets no answer, after the pending asks; connects if necessary. The frame
    // is lost while the peer rests, or if kToldMax other frames wait.
    void tell(std::shared_ptr<const std::vector<std::byte>> head);

    // Whether samples, a handshake's end or room for frames of tell() are awaited.
    [[nodiscard]] bool is_waiting() const {
        return !awaited_.empty() || is_connecting() || !told_.empty();
    }

    // Sends late samples to the origin, and ends a connection on which nothing arrives.
    void look();

    // Closes the channel; the awaited samples go to the origin. Asks the peer nothing for `rest`.
    void fall(Duration rest);

    // Sends the awaited samples that `chosen` selects to the origin, except those that were sent
    // there already.
    void redirect(const std::function<bool(domain::SampleIndex)>& chosen);

    void on_open(const PeerIdentity& peer) override;
    void on_frame(PeerFrame frame) override;
    void on_end(const Error& error) override;

private:
    struct Awaited {
        TimePoint asked_at{};
        bool sent = false;
        bool slow = false;
        bool late = false;       // fetched at the origin as well
        bool take_over = false;  // an own sample, asked for only if the peer has it
    };

    [[nodiscard]] bool is_connecting() const { return channel_ != nullptr && !is_open_; }

    void connect_if_due();
    void count(bool take_over, std::uint64_t PeerTotals::*otherwise);
    [[nodiscard]] bool is_late(const Awaited& awaited, Duration patience) const;
    void send_told();
    void on_hello(const PeerHello& hello);
    void on_answer(const PeerAnswer& answer, HeldBytes payload);
    void on_refusal(const PeerRefusal& refusal);
    void forget(domain::SampleIndex sample);
    void count_late(domain::SampleIndex sample);
    void tell_slow();

    PeerFetches& fetches_;
    const control::PeerMember member_;
    std::unique_ptr<PeerChannel> channel_;
    bool is_known_ = false;     // its certificate was verified
    bool is_open_ = false;      // its Hello has arrived
    bool has_failed_ = false;   // since it was last open
    TimePoint connected_at_{};  // when the connection was begun
    TimePoint heard_at_{};      // time of the last frame, or of the first ask after a pause
    TimePoint rests_until_{};
    TimePoint probes_at_{};  // when a stalled peer is asked for its next sample
    Duration rest_ = PeerFetches::kRestMin;
    std::unordered_map<domain::SampleIndex, Awaited> awaited_;
    std::deque<domain::SampleIndex> unsent_;  // may have entries that are no longer awaited
    std::size_t sent_ = 0;                    // number of awaited_ that were sent
    std::size_t late_ = 0;                    // number of awaited_ that are late
    std::deque<std::shared_ptr<const std::vector<std::byte>>> told_;  // not sent yet
    AnswerTimes times_;
    TakeOvers take_overs_;
};

}  // namespace stoker::sidecar
