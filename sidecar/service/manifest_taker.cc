#include "sidecar/service/manifest_taker.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "sidecar/core/placement.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kStepInterval = std::chrono::milliseconds{200};

using Said = ListingTurn::Said;

Said said_of(PeerManifestWait::State state) {
    switch (state) {
        case PeerManifestWait::State::kIdle:
            return Said::kIdle;
        case PeerManifestWait::State::kListing:
            return Said::kListing;
        case PeerManifestWait::State::kTaking:
            return Said::kTaking;
        case PeerManifestWait::State::kNever:
            return Said::kFailed;
    }
    return Said::kFailed;
}

// The file that receives the manifest. nullptr: the directory has the manifest already.
Result<std::shared_ptr<IncomingManifest>> make_file(
    Device& device,
    const std::string& directory,
    domain::RevisionId revision,
    std::uint64_t total_bytes) {
    if (MappedManifest::open(device, directory, revision)) {
        return std::shared_ptr<IncomingManifest>{};
    }
    STOKER_TRY(auto file, IncomingManifest::create(device, directory, revision, total_bytes));
    return std::shared_ptr<IncomingManifest>{std::move(file)};
}

}  // namespace

ManifestTaker::ManifestTaker(
    const SidecarParts& parts,
    PeerSelf self,
    const std::string& source,
    std::string directory,
    std::optional<Duration> age_max,
    Callbacks callbacks)
    : parts_(parts),
      self_(std::move(self)),
      source_(placement_hash(source)),
      directory_(std::move(directory)),
      age_max_(age_max),
      callbacks_(std::move(callbacks)),
      timer_(parts.loop),
      tasks_(parts.loop) {}

void ManifestTaker::begin(domain::RevisionId wanted) {
    stop();
    wanted_ = wanted;
    begun_at_ = parts_.loop.now();
    turn_.emplace(self_.hello.dataset_uid, self_.hello.node, begun_at_);
    set_group(members_);
    tasks_.post([this] { step(); });
}

void ManifestTaker::stop() {
    turn_.reset();
    timer_.cancel();
    follows_ = false;
    offers_.clear();
    transfer_.reset();
    keep_asking({});
}

void ManifestTaker::set_group(const std::vector<control::PeerMember>& members) {
    members_ = members;
    if (!turn_) {
        return;
    }
    std::vector<ListingTurn::Member> known;
    for (const control::PeerMember& member : members) {
        known.push_back({member.node, member.generation});
    }
    turn_->set_members(known);
    leave_old_leads();
    timer_.run_in(Duration{}, [this] { step(); });
}

// Closes the channels to leaders that are no longer members: they no longer answer, and a node's
// new leader has another address.
void ManifestTaker::leave_old_leads() {
    for (auto source = sources_.begin(); source != sources_.end();) {
        if (std::ranges::count(members_, source->second->member()) > 0) {
            ++source;
            continue;
        }
        if (transfer_ != nullptr && transfer_->node == source->first) {
            transfer_.reset();
            follows_ = false;
        }
        offers_.erase(source->first);
        gone_.push_back(std::move(source->second));
        source = sources_.erase(source);
    }
    if (!gone_.empty()) {
        tasks_.post([this] { gone_.clear(); });
    }
}

PeerManifestWait ManifestTaker::state() const {
    using State = PeerManifestWait::State;
    return {follows_ ? State::kTaking : State::kIdle, moves_};
}

void ManifestTaker::step() {
    if (!turn_) {
        return;
    }
    const TimePoint now = parts_.loop.now();
    timer_.run_in(kStepInterval, [this] { step(); });
    if (transfer_ != nullptr && !transfer_->is_writing && now - transfer_->moved_at > kPieceMax) {
        give_up({ErrorCode::kDeadlineExceeded, "the peer stopped sending the manifest"});
        return;
    }
    const ListingTurn::Step next = turn_->step(now);
    if (next.action == ListingTurn::Action::kList) {
        const Duration waited = turn_->has_group() ? Duration{} : now - begun_at_;
        end_with([this, waited] { callbacks_.list(waited); });
        return;
    }
    if (transfer_ != nullptr) {
        return;
    }
    if (next.action == ListingTurn::Action::kTake && sources_.contains(next.asked.front())) {
        take_from(next.asked.front());
    } else {
        keep_asking(next.asked);
    }
}

// Asks the nodes whose answers are not awaited yet; closes the channels to all other nodes.
void ManifestTaker::keep_asking(const std::vector<std::string>& nodes) {
    for (auto source = sources_.begin(); source != sources_.end();) {
        if (std::ranges::count(nodes, source->first) > 0) {
            ++source;
            continue;
        }
        gone_.push_back(std::move(source->second));
        source = sources_.erase(source);
    }
    if (!gone_.empty()) {
        tasks_.post([this] { gone_.clear(); });
    }
    for (const std::string& node : nodes) {
        if (!sources_.contains(node)) {
            connect(node);
        }
        const auto source = sources_.find(node);
        if (source != sources_.end() && !source->second->is_asked()) {
            ask(*source->second);
        }
    }
}

void ManifestTaker::connect(const std::string& node) {
    const auto member = std::ranges::find(members_, node, &control::PeerMember::node);
    if (member == members_.end()) {
        return;
    }
    sources_[node] = std::make_unique<ManifestSource>(
        *parts_.peers,
        self_,
        *member,
        ManifestSource::Callbacks{
            [this, node](const PeerManifestPiece& piece, HeldBytes bytes) {
                on_piece(node, piece, std::move(bytes));
            },
            [this, node](const PeerManifestWait& wait) { on_wait(node, wait); },
            [this, node](bool was_open) { on_ended(node, was_open); }});
}

// Asks the node whether it has a manifest, lists or waits.
void ManifestTaker::ask(ManifestSource& source) {
    source.ask({source_, wanted_, 0, 0, age_max_.has_value()});
}

// A listing of another attempt may be too old for ours, even if it is pinned: the rank that
// reported it shares its node with another job. Then this node lists, and RevisionGate compares.
bool ManifestTaker::is_wanted(const PeerManifestPiece& piece) const {
    const domain::RevisionId none{};
    if (piece.revision == none || (wanted_ != none && piece.revision != wanted_)) {
        return false;
    }
    const PeerListing listing = piece.listing.value_or(PeerListing{});
    const bool is_own = !parts_.attempt_uid.empty() && listing.attempt_uid == parts_.attempt_uid;
    return !age_max_ || is_own || (listing.age && *listing.age < *age_max_);
}

ManifestTaker::Offer ManifestTaker::offer_of(const PeerManifestPiece& piece) const {
    Offer offer{piece.revision, piece.total_bytes, piece.job_uid};
    if (piece.listing && piece.listing->age) {
        offer.listed_at = parts_.loop.clock().wall_now() - *piece.listing->age;
    }
    return offer;
}

void ManifestTaker::note(const std::string& node, Said said, std::uint64_t progress) {
    if (turn_) {
        turn_->note(node, said, progress, parts_.loop.now());
        moves_ += progress != std::exchange(last_progress_, progress) ? 1 : 0;
    }
}

void ManifestTaker::on_wait(const std::string& node, const PeerManifestWait& wait) {
    if (transfer_ != nullptr && transfer_->node == node) {
        give_up({ErrorCode::kUnavailable, "the peer no longer has the manifest that it offered"});
        return;
    }
    const Said said = said_of(wait.state);
    follows_ = said == Said::kListing || said == Said::kTaking;
    note(node, said, wait.progress);
}

void ManifestTaker::on_piece(
    const std::string& node, const PeerManifestPiece& piece, HeldBytes bytes) {
    if (transfer_ == nullptr) {
        offers_[node] = offer_of(piece);
        note(node, is_wanted(piece) ? Said::kHas : Said::kFailed, 1);
        timer_.run_in(Duration{}, [this] { step(); });
        return;
    }
    Transfer& transfer = *transfer_;
    if (transfer.node != node) {
        return;
    }
    const std::uint64_t left = transfer.offer.total_bytes - transfer.received;
    if (piece.revision != transfer.offer.revision ||
        piece.total_bytes != transfer.offer.total_bytes || piece.offset != transfer.received ||
        bytes.bytes.size() != std::min<std::uint64_t>(PeerManifestAsk::kBytesMax, left)) {
        give_up({ErrorCode::kCorruption, "the peer sent a manifest piece that was not requested"});
        return;
    }
    transfer.received += bytes.bytes.size();
    transfer.moved_at = parts_.loop.now();
    transfer.pieces.push_back(std::move(bytes));
    ++moves_;
    write_next();
}

// Tries a node again that cannot be reached and has not answered yet, for as long as its answer is
// awaited.
void ManifestTaker::on_ended(const std::string& node, bool was_open) {
    if (auto source = sources_.extract(node); !source.empty()) {
        gone_.push_back(std::move(source.mapped()));
        tasks_.post([this] { gone_.clear(); });
    }
    if (transfer_ != nullptr && transfer_->node == node) {
        if (transfer_->received < transfer_->offer.total_bytes) {
            give_up({ErrorCode::kUnavailable, "the connection to the peer has ended"});
        }
    } else if (was_open || offers_.erase(node) > 0) {
        follows_ = false;
        note(node, Said::kFailed, 0);
    }
}

void ManifestTaker::take_from(const std::string& node) {
    transfer_ = std::make_unique<Transfer>();
    transfer_->number = ++last_transfer_;
    transfer_->node = node;
    transfer_->offer = offers_[node];
    follows_ = true;
    log::info(
        "copying the manifest from a peer",
        {{"dataset", self_.hello.dataset_uid},
         {"node", node},
         {"revision", domain::to_string(transfer_->offer.revision)},
         {"bytes", transfer_->offer.total_bytes}});
    auto file =
        std::make_shared<Result<std::shared_ptr<IncomingManifest>>>(fail(ErrorCode::kInternal, ""));
    parts_.io.post([this,
                    file,
                    post = tasks_.poster(),
                    &device = parts_.device,
                    directory = directory_,
                    number = transfer_->number,
                    offer = transfer_->offer] {
        *file = make_file(device, directory, offer.revision, offer.total_bytes);
        post([this, file, number] {
            if (is_current(number)) {
                on_made(file);
            }
        });
    });
}

void ManifestTaker::on_made(
    const std::shared_ptr<Result<std::shared_ptr<IncomingManifest>>>& file) {
    if (!*file) {
        give_up(file->error());
        return;
    }
    if (**file == nullptr) {
        on_written({}, transfer_->offer.total_bytes);
        return;
    }
    transfer_->file = **file;
    transfer_->is_writing = false;
    transfer_->moved_at = parts_.loop.now();
    pump();
}

void ManifestTaker::pump() {
    Transfer& transfer = *transfer_;
    ManifestSource& source = *sources_.at(transfer.node);
    while (transfer.asked < transfer.offer.total_bytes &&
           transfer.asked - transfer.written < kWindow) {
        source.ask({source_, transfer.offer.revision, transfer.asked, PeerManifestAsk::kBytesMax});
        transfer.asked = std::min<std::uint64_t>(
            transfer.asked + PeerManifestAsk::kBytesMax, transfer.offer.total_bytes);
    }
}

void ManifestTaker::write_next() {
    Transfer& transfer = *transfer_;
    if (transfer.is_writing || transfer.pieces.empty()) {
        return;
    }
    transfer.is_writing = true;
    const auto status = std::make_shared<Status>();
    parts_.io.post([this,
                    status,
                    post = tasks_.poster(),
                    file = transfer.file,
                    number = transfer.number,
                    piece = std::move(transfer.pieces.front())] {
        *status = file->append(piece.bytes);
        if (*status && file->is_complete()) {
            *status = file->finish();
        }
        post([this, status, number, bytes = piece.bytes.size()] {
            if (is_current(number)) {
                on_written(*status, bytes);
            }
        });
    });
    transfer.pieces.pop_front();
}

void ManifestTaker::on_written(const Status& status, std::uint64_t bytes) {
    if (!status) {
        give_up(status.error());
        return;
    }
    Transfer& transfer = *transfer_;
    transfer.is_writing = false;
    transfer.moved_at = parts_.loop.now();
    transfer.written += bytes;
    if (transfer.written == transfer.offer.total_bytes) {
        const Offer& offer = transfer.offer;
        const TakenManifest taken{offer.revision, offer.job_uid, offer.listed_at};
        end_with([this, taken] { callbacks_.taken(taken); });
        return;
    }
    pump();
    write_next();
}

// Gives up the transfer; then asks the next node, or lists the origin.
void ManifestTaker::give_up(const Error& error) {
    log::warning(
        "the manifest of a peer cannot be used",
        {{"dataset", self_.hello.dataset_uid},
         {"node", transfer_->node},
         {"error", error.message}});
    note(transfer_->node, Said::kFailed, 0);
    transfer_.reset();
    follows_ = false;
    timer_.run_in(Duration{}, [this] { step(); });
}

void ManifestTaker::end_with(std::function<void()> callback) {
    stop();
    tasks_.post(std::move(callback));
}

}  // namespace stoker::sidecar
