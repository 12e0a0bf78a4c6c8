#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/runtime/event_loop.h"
#include "sidecar/core/listing_turn.h"
#include "sidecar/service/manifest_source.h"
#include "sidecar/service/sidecar_parts.h"
#include "sidecar/store/incoming_manifest.h"

namespace stoker::sidecar {

// A manifest that another node has listed, complete and checked in our node directory.
struct TakenManifest {
    domain::RevisionId revision{};
    std::string job_uid;  // of the job whose key has listed or read it; empty: not known
    std::optional<WallTime> listed_at{};  // nullopt: not known, or nobody asked
};

// Decides with the other nodes of the group who lists the origin (ListingTurn), and copies the
// manifest from the node that lists. At most kWindow bytes of a manifest are requested and not yet
// on the disk. Use it on the loop's thread; `parts` must have peers.
class ManifestTaker {
public:
    struct Callbacks {
        std::function<void(const TakenManifest&)> taken;
        // The origin must be listed on this node. `waited`: how long we waited for the operator to
        // send a group; zero: a group is known.
        std::function<void(Duration waited)> list;
    };

    static constexpr std::uint64_t kWindow = 4 * std::uint64_t{PeerManifestAsk::kBytesMax};
    static constexpr Duration kPieceMax = std::chrono::seconds{10};  // longest wait for one

    // `source`: Origin::describe(). `directory`: data/ of the node directory. `age_max`: listings of
    // other attempts that are this old or older are not taken, unless one revision is wanted; nullopt:
    // any age.
    ManifestTaker(
        const SidecarParts& parts,
        PeerSelf self,
        const std::string& source,
        std::string directory,
        std::optional<Duration> age_max,
        Callbacks callbacks);
    ManifestTaker(const ManifestTaker&) = delete;
    ManifestTaker& operator=(const ManifestTaker&) = delete;

    // Starts the decision over; one callback follows, unless stop() is called. `wanted`: the only
    // revision to accept; 0: any.
    void begin(domain::RevisionId wanted);
    void stop();

    void set_group(const std::vector<control::PeerMember>& members);

    // The answer to peers that ask us for a manifest before we have one.
    [[nodiscard]] PeerManifestWait state() const;

private:
    struct Offer {
        domain::RevisionId revision{};
        std::uint64_t total_bytes = 0;
        std::string job_uid;
        std::optional<WallTime> listed_at{};
    };

    struct Transfer {
        std::uint64_t number = 0;
        std::string node;
        Offer offer;
        std::uint64_t asked = 0;
        std::uint64_t received = 0;
        std::uint64_t written = 0;
        bool is_writing = true;  // a piece is being written, or the file is being made
        TimePoint moved_at{};
        std::deque<HeldBytes> pieces;            // received and not yet written
        std::shared_ptr<IncomingManifest> file;  // nullptr: not made yet
    };

    void step();
    void leave_old_leads();
    void keep_asking(const std::vector<std::string>& nodes);
    void connect(const std::string& node);
    void ask(ManifestSource& source);
    void on_wait(const std::string& node, const PeerManifestWait& wait);
    void on_piece(const std::string& node, const PeerManifestPiece& piece, HeldBytes bytes);
    void on_ended(const std::string& node, bool was_open);
    [[nodiscard]] bool is_wanted(const PeerManifestPiece& piece) const;
    [[nodiscard]] Offer offer_of(const PeerManifestPiece& piece) const;
    void note(const std::string& node, ListingTurn::Said said, std::uint64_t progress);
    void take_from(const std::string& node);
    void on_made(const std::shared_ptr<Result<std::shared_ptr<IncomingManifest>>>& file);
    void pump();
    void write_next();

    [[nodiscard]] bool is_current(std::uint64_t number) const {
        return transfer_ != nullptr && transfer_->number == number;
    }

    void on_written(const Status& status, std::uint64_t bytes);
    void give_up(const Error& error);
    void end_with(std::function<void()> callback);

    SidecarParts parts_;
    const PeerSelf self_;
    const std::uint64_t source_;
    const std::string directory_;
    const std::optional<Duration> age_max_;
    Callbacks callbacks_;
    std::vector<control::PeerMember> members_;
    std::optional<ListingTurn> turn_;  // set while it decides
    TimePoint begun_at_{};
    domain::RevisionId wanted_{};
    bool follows_ = false;     // we wait for a node that lists, copies or has a manifest
    std::uint64_t moves_ = 0;  // progress of ours and of nodes that we wait for
    std::uint64_t last_progress_ = 0;
    std::uint64_t last_transfer_ = 0;
    std::map<std::string, std::unique_ptr<ManifestSource>> sources_;  // by node
    std::map<std::string, Offer> offers_;
    std::unique_ptr<Transfer> transfer_;
    std::vector<std::unique_ptr<ManifestSource>> gone_;  // destroyed in the loop's next iteration
    LoopTimer timer_;
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
