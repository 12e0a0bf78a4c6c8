#include "sidecar/core/eviction/replicate_eviction.h"

#include <algorithm>

namespace stoker::sidecar {

namespace {

// Residents that make_room() looks at before it gives up: those before may all be held.
constexpr int kLooksMax = 256;

}  // namespace

ReplicateEviction::Key& ReplicateEviction::ghost(SampleIndex sample) {
    if (sample >= ghosts_.size()) {
        ghosts_.resize(std::max<std::size_t>(std::size_t{sample} + 1, ghosts_.size() * 2));
        resident_.resize(ghosts_.size());
    }
    return ghosts_[sample];
}

void ReplicateEviction::on_resident(SampleIndex sample, Bytes bytes) {
    const Key key = ghost(sample);
    if (!resident_[sample]) {
        resident_[sample] = true;
        queue_.insert({key, sample, bytes});
    }
}

void ReplicateEviction::on_gone(SampleIndex sample) {
    const Key key = ghost(sample);
    if (resident_[sample]) {
        resident_[sample] = false;
        queue_.erase({key, sample, {}});
    }
}

void ReplicateEviction::on_read(SampleIndex sample, bool /*hit*/) {
    Key key = ghost(sample);
    ++key.reads;
    set_key(sample, key);
}

void ReplicateEviction::on_score(SampleIndex sample, float score) {
    Key key = ghost(sample);
    key.score = score;
    set_key(sample, key);
}

void ReplicateEviction::set_key(SampleIndex sample, Key key) {
    const auto queued = queue_.find({ghosts_[sample], sample, {}});
    if (queued != queue_.end()) {
        const Bytes bytes = queued->bytes;
        queue_.erase(queued);
        queue_.insert({key, sample, bytes});
    }
    ghosts_[sample] = key;
}

bool ReplicateEviction::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    const Key worth = ghost(incoming);
    const std::size_t before = victims.size();
    Bytes freed;
    int looks = kLooksMax;
    for (auto entry = queue_.begin();
         freed < needed && entry != queue_.end() && entry->key < worth && looks > 0;
         ++entry, --looks) {
        if (may_go(entry->sample)) {
            victims.push_back(entry->sample);
            freed += entry->bytes;
        }
    }
    if (freed < needed) {
        victims.resize(before);
        return false;
    }
    return true;
}

void ReplicateEviction::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    Bytes freed;
    for (auto entry = queue_.begin(); freed < excess && entry != queue_.end(); ++entry) {
        victims.push_back(entry->sample);
        freed += entry->bytes;
    }
}

}  // namespace stoker::sidecar
