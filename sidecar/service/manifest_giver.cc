#include "sidecar/service/manifest_giver.h"

#include <algorithm>
#include <utility>

#include "sidecar/core/placement.h"

namespace stoker::sidecar {

ManifestGiver::ManifestGiver(const std::string& source, std::function<PeerManifestWait()> state)
    : source_(placement_hash(source)),
      state_(std::move(state)) {}

void ManifestGiver::offer(std::shared_ptr<const MappedManifest> manifest, CurrentRevision current) {
    manifest_ = std::move(manifest);
    current_ = std::move(current);
}

PeerFrame ManifestGiver::answer(const PeerManifestAsk& ask, bool is_old, WallTime now) const {
    const PeerManifestWait never{PeerManifestWait::State::kNever, 0};
    if (ask.source != source_) {
        return {encode_peer_head(never), {}};
    }
    if (manifest_ == nullptr) {
        return {encode_peer_head(state_()), {}};
    }
    const auto revision = manifest_->view().revision();
    const auto file = manifest_->bytes();
    const bool is_wanted =
        ask.revision == domain::RevisionId{} ? !is_old : ask.revision == revision;
    if (!is_wanted || ask.offset > file.size()) {
        return {encode_peer_head(never), {}};
    }
    const auto count = std::min<std::uint64_t>(ask.bytes, file.size() - ask.offset);
    PeerManifestPiece piece{revision, ask.offset, file.size(), current_.job_uid};
    if (ask.wants_age) {
        piece.listing = {current_.attempt_uid, age_of(current_, now)};
    }
    return {encode_peer_head(piece), {file.subspan(ask.offset, count), manifest_}};
}

}  // namespace stoker::sidecar
