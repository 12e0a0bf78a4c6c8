#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sidecar/service/loss_intake.h"
#include "sidecar/service/manifest_giver.h"
#include "sidecar/service/peer_server.h"
#include "sidecar/service/served_dataset.h"
#include "sidecar/service/sidecar_parts.h"
#include "wire/control/orders.h"

namespace stoker::sidecar {

// Answers the other nodes of a served dataset's group. Each sample that a peer asks for becomes a
// demand of the peers' party at the engine, and is sent when it is stored and read. A sample that
// another node owns, or that the peer wants only if present, is sent only if it is stored here or
// on its way from the origin; it is never fetched for a peer, so no request is forwarded. A session
// whose Hello has no revision asks for the manifest; it is answered even before the dataset is
// served.
//
// Passes losses that a peer reports to the samplers of jobs that read here as well; LossIntake
// bounds them.
//
// Bounds per session: kAsksMax samples in work, kUnsentMax bytes read and not yet sent. A peer that
// receives no bytes for kStuckMax, or leaves more than kRefusalsMax refusals unreceived, is cut
// off. Use it on the loop's thread.
class PeerDesk final : public PeerHandler {
public:
    static constexpr std::size_t kAsksMax = 1024;
    static constexpr std::size_t kRefusalsMax = 4096;  // an honest peer awaits 256 samples
    static constexpr Bytes kUnsentMax = mib(8);
    static constexpr Duration kStuckMax = std::chrono::seconds{30};

    // `ours`: our Hello; serve() sets its revision. Sessions wait until serve().
    PeerDesk(const SidecarParts& parts, PeerHello ours, ManifestGiver giver);
    PeerDesk(const PeerDesk&) = delete;
    PeerDesk& operator=(const PeerDesk&) = delete;

    // Does what close() does.
    ~PeerDesk() override;

    // Answers from this dataset from now on. Call it once; `served` must outlive this object.
    void serve(ServedDataset& served);

    // The part that answers requests for the manifest.
    [[nodiscard]] ManifestGiver& giver() { return giver_; }

    // Ends the sessions of nodes that are no longer members, or that have a newer leader; welcomes
    // sessions of nodes that have become members.
    void set_group(const std::vector<control::PeerMember>& members);

    void attach(PeerSession& session) override;
    void on_frame(PeerSession& session, const PeerMessage& message) override;
    void on_drained(PeerSession& session) override;
    void detach(PeerSession& session) override;

    // Refuses every session; no request is answered any more.
    void close();

private:
    // One sample that a peer waits for.
    struct Ask {
        PeerSession* session = nullptr;  // nullptr: the session has ended
        std::uint64_t request_id = 0;
        SampleIndex sample = 0;
        bool is_second = false;  // asked again, because the stored bytes were damaged
    };

    struct Guest {
        bool is_welcome = false;
        bool wants_manifest = false;
        std::size_t asks = 0;
        // Refusals that the peer may not have received yet: `older_refusals` were sent before
        // sent_bytes() was `refused_from`, `refusals` after that point.
        std::size_t older_refusals = 0;
        std::size_t refusals = 0;
        std::uint64_t refused_from = 0;
        Bytes reading{};
        std::size_t unsent_seen = 0;     // unsent bytes when cut_stuck() last looked
        std::deque<ConnectionId> ready;  // asks whose sample is stored, waiting for room to send
        TimePoint moved_at{};            // time of the last progress
        LossIntake losses{};
    };

    // Orders sessions by their beginnings, so that equal runs treat them in equal order. nullptr,
    // which is no session, sorts first.
    struct Earlier {
        bool operator()(const PeerSession* one, const PeerSession* other) const {
            return number(one) < number(other);
        }

        static std::uint64_t number(const PeerSession* session) {
            return session == nullptr ? 0 : session->number();
        }
    };

    enum class Standing : std::uint8_t { kMember, kNotYet, kOld };

    [[nodiscard]] Standing standing(const PeerHello& hello) const;
    void settle(PeerSession& session);
    void end(PeerSession& session, PeerRefusalReason reason);
    [[nodiscard]] bool is_valid(const Guest& guest, const PeerMessage& message) const;
    void take(PeerSession& session, const PeerAsk& ask);
    [[nodiscard]] bool is_there(SampleIndex sample) const;
    [[nodiscard]] bool give_manifest(PeerSession& session, const PeerMessage& message);
    void end_broken(PeerSession& session);
    void hear(PeerSession& session, const PeerLosses& losses);
    void demand(PeerSession& session, std::uint64_t request_id, SampleIndex sample);
    bool on_reply(const FetchReply& reply);
    void send_ready(PeerSession& session);
    void read(ConnectionId id);
    void on_read(ConnectionId id, const std::shared_ptr<Result<RecordBytes>>& record);
    void refuse(const Ask& ask, PeerRefusalReason reason);
    void leave_later(ConnectionId id);
    void leave_now();
    void anchor();
    void settle_all();
    void cut_stuck();

    SidecarParts parts_;
    ServedDataset* served_ = nullptr;  // nullptr: no dataset is served yet
    PeerHello ours_;
    ManifestGiver giver_;
    std::vector<control::PeerMember> members_;
    std::map<PeerSession*, Guest, Earlier> guests_;
    std::map<ConnectionId, Ask> asks_;  // by the ask's connection id at the engine
    std::vector<ConnectionId> leaving_;
    std::optional<ConnectionId> anchor_;  // keeps the peers' party while there is a group
    LoopTimer stuck_timer_;
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
