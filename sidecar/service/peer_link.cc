#include "sidecar/service/peer_link.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "common/log/log.h"

namespace stoker::sidecar {

using domain::SampleIndex;

PeerLink::PeerLink(PeerFetches& fetches, control::PeerMember member)
    : fetches_(fetches),
      member_(std::move(member)) {}

bool PeerLink::may_ask() const {
    const TimePoint now = fetches_.loop_.now();
    const bool may_connect = channel_ == nullptr && now >= rests_until_;
    const bool is_connected = channel_ != nullptr && (is_open_ || !has_failed_);
    return may_connect || (is_connected && (!is_stalled() || now >= probes_at_));
}

// Asks a peer that has failed again only once it is reconnected, so that no sample waits for the
// connection.
bool PeerLink::ask(SampleIndex sample, bool take_over) {
    const TimePoint now = fetches_.loop_.now();
    connect_if_due();
    if (channel_ == nullptr || (!is_open_ && has_failed_)) {
        count(take_over, &PeerTotals::failures);
        return false;
    }
    if (is_stalled() && now < probes_at_) {
        count(take_over, &PeerTotals::hedges);
        return false;
    }
    probes_at_ = now + PeerFetches::kProbe;
    heard_at_ = awaited_.empty() ? now : heard_at_;  // nothing was awaited before
    const auto [found, is_new] = awaited_.try_emplace(sample);
    if (is_new) {
        unsent_.push_back(sample);
    }
    late_ -= found->second.late ? 1 : 0;
    found->second.late = found->second.slow = false;
    found->second.asked_at = now;
    found->second.take_over = take_over;
    return true;
}

bool PeerLink::may_take_over() {
    connect_if_due();
    return channel_ != nullptr && (is_open_ || !has_failed_) && !is_stalled();
}

// Counts a sample that is fetched at the origin. Take-overs are counted separately: without peers
// they would have been fetched from the origin, too.
void PeerLink::count(bool take_over, std::uint64_t PeerTotals::*otherwise) {
    ++(fetches_.totals_.*(take_over ? &PeerTotals::take_overs_failed : otherwise));
}

void PeerLink::tell(std::shared_ptr<const std::vector<std::byte>> head) {
    connect_if_due();
    if (channel_ != nullptr && told_.size() < PeerFetches::kToldMax) {
        told_.push_back(std::move(head));
        send_told();
    }
}

// Sends waiting frames of tell(). Unsent bytes delay the next request for samples, so at most
// kToldUnsentMax may be unsent.
void PeerLink::send_told() {
    while (is_open_ && !told_.empty() && channel_->unsent_bytes() < PeerFetches::kToldUnsentMax) {
        channel_->send({*told_.front(), {}});
        told_.pop_front();
    }
}

void PeerLink::connect_if_due() {
    if (channel_ != nullptr || fetches_.loop_.now() < rests_until_) {
        return;
    }
    connected_at_ = heard_at_ = fetches_.loop_.now();
    is_known_ = is_open_ = false;
    channel_ = fetches_.network_.connect(member_.address, *this);
    channel_->send({encode_peer_head(fetches_.self_.hello), {}});
}

void PeerLink::flush() {
    while (is_open_ && !unsent_.empty() && sent_ < PeerFetches::kInFlightMax) {
        std::array<PeerAsk, 2> asks;  // [0]: own samples of the peer; [1]: take-overs
        asks[1].only_if_there = true;
        while (!unsent_.empty() && sent_ < PeerFetches::kInFlightMax) {
            const auto found = awaited_.find(unsent_.front());
            unsent_.pop_front();
            if (found != awaited_.end() && !found->second.sent) {
                found->second.sent = true;
                ++sent_;
                asks.at(found->second.take_over ? 1 : 0).samples.push_back(found->first);
            }
        }
        for (PeerAsk& ask : asks) {
            if (!ask.samples.empty()) {
                ask.request_id = ++fetches_.last_request_;
                channel_->send({encode_peer_head(ask), {}});
            }
        }
    }
}

void PeerLink::look() {
    send_told();
    const TimePoint now = fetches_.loop_.now();
    const bool is_slow_to_connect =
        is_connecting() && !is_known_ && now - connected_at_ > PeerFetches::kConnectMax;
    const bool is_silent = !awaited_.empty() && now - heard_at_ > PeerFetches::kSilenceMax;
    if (is_slow_to_connect || is_silent) {
        fetches_.totals_.connect_failures += is_slow_to_connect ? 1 : 0;
        fall(rest_);
        return;
    }
    // Uses a shorter limit for a peer that has stopped answering, so that its samples do not hold
    // slots for which other samples wait.
    const Duration usual = Patience::of(times_, fetches_.origin_times_);
    const bool is_mute = late_ > 0 && now - heard_at_ > usual;
    const Duration patience = is_mute ? Patience::kLeast : usual;
    std::vector<SampleIndex> late;
    for (const auto& [sample, awaited] : awaited_) {
        if (is_late(awaited, patience)) {
            late.push_back(sample);
        }
    }
    std::ranges::sort(late);  // so that equal runs give equal orders
    for (const SampleIndex sample : late) {
        has_failed_ = has_failed_ || !is_open_;
        count(awaited_.at(sample).take_over, &PeerTotals::hedges);
        count_late(sample);
        fetches_.callbacks_.to_origin(sample);
    }
    tell_slow();
}

// A take-over needs no patience while the peer sends nothing: it is asked only for what it has.
bool PeerLink::is_late(const Awaited& awaited, Duration patience) const {
    const TimePoint now = fetches_.loop_.now();
    const bool is_short = awaited.take_over && now - heard_at_ > PeerFetches::kTakeOverPatience;
    return !awaited.late &&
           now - awaited.asked_at > (is_short ? PeerFetches::kTakeOverPatience : patience);
}

// Calls `slow` for samples awaited longer than kSlow; if one is slow, for all awaited samples.
// Where slots are few, each sample would otherwise keep its slot for kSlow, and the samples of a
// batch would wait for each other.
void PeerLink::tell_slow() {
    const TimePoint now = fetches_.loop_.now();
    const bool is_slow = std::ranges::any_of(
        awaited_, [](const auto& entry) { return entry.second.slow && !entry.second.late; });
    const Duration patience = is_slow ? Duration{} : PeerFetches::kSlow;
    std::vector<SampleIndex> slow;
    for (auto& [sample, awaited] : awaited_) {
        if (!awaited.late && !awaited.slow && now - awaited.asked_at > patience) {
            awaited.slow = true;
            slow.push_back(sample);
        }
    }
    std::ranges::sort(slow);  // so that equal runs give equal orders
    std::ranges::for_each(slow, fetches_.callbacks_.slow);
}

// Counts the sample as late: its answer may still come. Forgets a sample never requested.
void PeerLink::count_late(SampleIndex sample) {
    Awaited& awaited = awaited_.at(sample);
    if (!awaited.sent) {
        awaited_.erase(sample);
        return;
    }
    awaited.late = true;
    ++late_;
}

void PeerLink::redirect(const std::function<bool(SampleIndex)>& chosen) {
    std::vector<SampleIndex> samples;
    for (const auto& [sample, awaited] : awaited_) {
        if (!awaited.late && chosen(sample)) {
            samples.push_back(sample);
        }
    }
    std::ranges::sort(samples);
    for (const SampleIndex sample : samples) {
        count(awaited_.at(sample).take_over, &PeerTotals::failures);
        count_late(sample);
        fetches_.callbacks_.to_origin(sample);
    }
}

void PeerLink::fall(Duration rest) {
    channel_.reset();
    is_known_ = is_open_ = false;
    has_failed_ = true;
    rests_until_ = fetches_.loop_.now() + rest;
    rest_ = std::min(rest_ * 2, PeerFetches::kRestMax);
    unsent_.clear();
    told_.clear();
    redirect([](SampleIndex) { return true; });
    awaited_.clear();
    sent_ = late_ = 0;
}

void PeerLink::on_open(const PeerIdentity& peer) {
    heard_at_ = fetches_.loop_.now();
    is_known_ = peer.namespace_name == fetches_.self_.namespace_name &&
                std::ranges::count(peer.dataset_uids, fetches_.self_.hello.dataset_uid) > 0;
    if (!is_known_) {
        log::warning(
            "a peer's certificate is for another dataset",
            {{"node", member_.node}, {"address", member_.address}});
        fall(PeerFetches::kQuarantine);
    }
}

void PeerLink::on_frame(PeerFrame frame) {
    heard_at_ = fetches_.loop_.now();
    const auto message = decode_peer_head(frame.head);
    if (!message) {
        log::warning(
            "a peer sent an invalid frame",
            {{"node", member_.node}, {"error", message.error().message}});
        fall(PeerFetches::kQuarantine);
    } else if (const auto* hello = std::get_if<PeerHello>(&*message)) {
        on_hello(*hello);
    } else if (const auto* answer = std::get_if<PeerAnswer>(&*message)) {
        on_answer(*answer, std::move(frame.payload));
    } else if (const auto* refusal = std::get_if<PeerRefusal>(&*message)) {
        on_refusal(*refusal);
    } else {
        fall(PeerFetches::kQuarantine);  // the peer may still ask us, on its own channel
    }
}

void PeerLink::on_hello(const PeerHello& hello) {
    const PeerHello& ours = fetches_.self_.hello;
    if (hello.dataset_uid != ours.dataset_uid || hello.revision != ours.revision ||
        hello.node != member_.node || hello.generation < member_.generation) {
        fall(rest_);
        return;
    }
    is_open_ = true;
    has_failed_ = false;
    flush();
    send_told();
}

void PeerLink::on_answer(const PeerAnswer& answer, HeldBytes payload) {
    const auto found = awaited_.find(answer.sample);
    if (found == awaited_.end() || !found->second.sent) {
        fall(PeerFetches::kQuarantine);
        return;
    }
    rest_ = PeerFetches::kRestMin;
    times_.note(heard_at_ - found->second.asked_at);
    forget(answer.sample);
    fetches_.callbacks_.arrived(answer.sample, std::move(payload), answer.crc32c, member_.node);
    flush();
}

void PeerLink::on_refusal(const PeerRefusal& refusal) {
    if (refusal.request_id == 0) {
        log::info(
            "a peer refused our connection",
            {{"node", member_.node}, {"reason", static_cast<unsigned>(refusal.reason)}});
        fall(rest_);
        return;
    }
    const auto found = awaited_.find(refusal.sample);
    if (found == awaited_.end()) {
        return;
    }
    const bool is_late = found->second.late;
    const bool is_take_over = found->second.take_over;
    forget(refusal.sample);
    if (is_take_over && refusal.reason == PeerRefusalReason::kNotMine) {
        take_overs_.note_lacked();
        fetches_.totals_.take_overs_lacked += is_late ? 0 : 1;
    } else if (!is_late) {
        count(is_take_over, &PeerTotals::failures);
    }
    if (!is_late) {
        fetches_.callbacks_.to_origin(refusal.sample);
    }
    flush();
}

void PeerLink::forget(SampleIndex sample) {
    const auto found = awaited_.find(sample);
    sent_ -= found->second.sent ? 1 : 0;
    late_ -= found->second.late ? 1 : 0;
    awaited_.erase(found);
}

void PeerLink::on_end(const Error& error) {
    log::info(
        "the connection to a peer ended",
        {{"node", member_.node}, {"address", member_.address}, {"error", error.message}});
    fetches_.totals_.connect_failures += is_connecting() ? 1 : 0;
    fall(rest_);
}

}  // namespace stoker::sidecar
