#include "sidecar/service/manifest_giver.h"

#include <algorithm>
#include <utility>

#include "sidecar/core/placement.h"

namespace stoker::sidecar {

ManifestGiver::ManifestGiver(const std::string& source, std::function<PeerManifestWait()> state)
    : source_(placement_hash(source)),
      state_(std::move(state)) {}

void ManifestGiver::offer(std::shared_ptr<const MappedManifest> manifest, std::string job_uid) {
    manifest_ = std::move(manifest);
    job_uid_ = std::move(job_uid);
}

PeerFrame ManifestGiver::answer(const PeerManifestAsk& ask, bool is_old) const {
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
    return {
        encode_peer_head(PeerManifestPiece{revision, ask.offset, file.size(), job_uid_}),
        {file.subspan(ask.offset, count), manifest_}};
}

}  // namespace stoker::sidecar
