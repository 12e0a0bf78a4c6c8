#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/runtime/event_loop.h"
#include "sidecar/core/answer_times.h"
#include "sidecar/core/placement.h"
#include "sidecar/peers/peer_messages.h"
#include "sidecar/peers/peer_network.h"
#include "wire/control/orders.h"

namespace stoker::sidecar {

class PeerLink;

// This leader, as peers know it.
struct PeerSelf {
    std::string namespace_name;
    PeerHello hello;
};

// Totals since we became the leader.
struct PeerTotals {
    std::uint64_t samples = 0;  // stored from a peer's answer
    Bytes bytes{};
    std::uint64_t hedges = 0;    // fetched at the origin because the owner was slow
    std::uint64_t failures = 0;  // fetched at the origin because the owner failed or refused
    std::uint64_t connect_failures = 0;   // connections not made, or ended before the peer's Hello
    std::uint64_t taken_over = 0;         // of `samples`: own ones
    std::uint64_t take_overs_lacked = 0;  // own, fetched at the origin because the peer lacked them
    std::uint64_t take_overs_failed = 0;  // own, fetched there because the peer was slow or failed
};

// Asks the owners of samples for them, over one channel for each peer of the group; opens it for
// the first sample asked of that peer. All samples of one turn of the loop go to a peer in one
// frame. Asks former owners for own samples that they may still have (core/take_overs.h).
//
// A sample goes to the origin instead if its peer refuses it, breaks the connection, sends wrong
// bytes, or takes far longer than its own recent answers (core/answer_times.h); also while a peer
// that failed is not connected again, or kStalledMin of its samples are late. Use it on the loop's
// thread; `loop` and `network` must outlive it.
class PeerFetches {
public:
    struct Callbacks {
        // An answer of the group's node `from`, with the checksum that it claims. Comes also after
        // to_origin(): the first answer wins.
        std::function<void(
            domain::SampleIndex, HeldBytes, std::uint32_t crc32c, const std::string& from)>
            arrived;

        // The peer has not answered for kSlow, or another sample asked of it is slow. At
        // most once for each ask().
        std::function<void(domain::SampleIndex)> slow;

        // Fetch the sample from the origin as well; the peer may still answer. At most once for
        // each ask().
        std::function<void(domain::SampleIndex)> to_origin;
    };

    static constexpr std::size_t kInFlightMax = 256;  // samples of one peer; more wait here
    static constexpr Duration kSlow = std::chrono::seconds{1};
    static constexpr std::size_t kStalledMin = 8;
    static constexpr Duration kProbe = std::chrono::seconds{1};  // between samples of a stalled one
    static constexpr Duration kRestMin = std::chrono::milliseconds{200};  // between connections
    static constexpr Duration kRestMax = std::chrono::seconds{15};
    static constexpr Duration kQuarantine = std::chrono::seconds{60};  // after wrong bytes
    static constexpr Duration kConnectMax = std::chrono::seconds{3};
    static constexpr Duration kSilenceMax = std::chrono::seconds{30};  // while samples are awaited
    // For own samples of a former owner, which only looks them up; and it may be gone, while others
    // wait for this node.
    static constexpr Duration kTakeOverPatience = std::chrono::milliseconds{250};

    static constexpr std::size_t kToldMax = 64;  // frames that are not answered, for one peer
    static constexpr std::size_t kToldUnsentMax = std::size_t{32} << 10U;  // bytes before them

    PeerFetches(EventLoop& loop, PeerNetwork& network, PeerSelf self, Callbacks callbacks);
    PeerFetches(const PeerFetches&) = delete;
    PeerFetches& operator=(const PeerFetches&) = delete;
    ~PeerFetches();

    // Replaces the group. `members` has the order of the placement's nodes, the own one included.
    // Awaited samples whose owner changed go to the origin. nullptr: no group.
    void set_group(
        std::shared_ptr<const Placement> placement,
        const std::vector<control::PeerMember>& members);

    // Whether the sample's owner can be asked now, as far as is known.
    [[nodiscard]] bool may_ask(domain::SampleIndex sample) const;

    // Counts a sample that goes to the origin because may_ask() was false.
    void note_not_asked(domain::SampleIndex sample);

    // Whether another node should be asked for this own sample before the origin; then ask() asks
    // it.
    [[nodiscard]] bool takes_over(domain::SampleIndex sample);

    // Asks the sample's owner; for an own sample, its former owner. False: it cannot be asked now.
    [[nodiscard]] bool ask(domain::SampleIndex sample);

    // Until the next call, the node is not asked for the sample by takes_over(): it has asked us.
    void set_asker(std::string node, domain::SampleIndex sample) {
        asker_ = {std::move(node), sample};
    }

    // Sends a frame that is not answered to every other node; it may be lost.
    void tell_all(const PeerMessage& message);

    // The node sent bytes of the sample that do not match their checksum or length; it is fetched at
    // the origin.
    void on_wrong_bytes(domain::SampleIndex sample, const std::string& node);

    // The origin took this long for a sample.
    void note_origin(Duration time) { origin_times_.note(time); }

    // A sample was stored from the node's answer.
    void note_stored(domain::SampleIndex sample, const std::string& node, Bytes payload);

    [[nodiscard]] const PeerTotals& totals() const { return totals_; }

private:
    friend class PeerLink;

    [[nodiscard]] bool is_own(domain::SampleIndex sample) const {
        return placement_ != nullptr && placement_->is_own(sample);
    }

    // nullptr: no such node, or it is this one.
    [[nodiscard]] PeerLink* owner(domain::SampleIndex sample) const;
    [[nodiscard]] PeerLink* former_owner(domain::SampleIndex sample) const;
    [[nodiscard]] PeerLink* link_to(const std::string& node) const;

    void flush_soon();
    void look_soon();
    void look();

    EventLoop& loop_;
    PeerNetwork& network_;
    const PeerSelf self_;
    Callbacks callbacks_;
    std::shared_ptr<const Placement> placement_;
    std::vector<std::unique_ptr<PeerLink>> links_;  // by position in the group; nullptr: we
    std::pair<std::string, domain::SampleIndex> asker_;
    AnswerTimes origin_times_;
    PeerTotals totals_;
    std::uint64_t last_request_ = 0;
    bool flushing_ = false;  // a flush is posted
    bool looking_ = false;   // the timer runs
    LoopTimer timer_;
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
