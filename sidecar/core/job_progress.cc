#include "sidecar/core/job_progress.h"

#include <algorithm>

namespace stoker::sidecar {

void JobProgress::disconnect(StreamId stream) {
    const auto found = connections_.find(stream);
    if (found != connections_.end() && --found->second == 0) {
        connections_.erase(found);
    }
}

void JobProgress::begin(StreamId stream, std::uint32_t rank, EpochProgress progress) {
    forget_ended(rank);
    if (entries_.size() >= kStreamsMax && !entries_.contains(stream)) {
        return;
    }
    progress.position = std::min(progress.position, progress.samples);
    entries_[stream] = {rank, progress, progress.position};
}

void JobProgress::read(StreamId stream, std::uint64_t epoch, std::uint64_t samples) {
    if (Entry* entry = find(stream, epoch)) {
        EpochProgress& progress = entry->progress;
        progress.position += std::min(samples, progress.samples - progress.position);
    }
}

void JobProgress::drawn(StreamId stream, std::uint64_t epoch, std::uint64_t samples, bool ended) {
    if (Entry* entry = find(stream, epoch)) {
        entry->drawn += samples;
        if (ended) {
            entry->progress.samples = entry->drawn;
            entry->progress.position = std::min(entry->progress.position, entry->drawn);
        }
    }
}

EpochProgress JobProgress::sum() const {
    std::map<std::uint32_t, std::uint64_t> newest;  // by rank
    EpochProgress sum;
    for (const auto& [stream, entry] : entries_) {
        std::uint64_t& epoch = newest[entry.rank];
        epoch = std::max(epoch, entry.progress.epoch);
        sum.epoch = std::max(sum.epoch, epoch);
    }
    for (const auto& [stream, entry] : entries_) {
        if (entry.progress.epoch != newest.at(entry.rank)) {
            continue;
        }
        sum.samples += entry.progress.samples;
        if (entry.progress.epoch == sum.epoch) {
            sum.position += entry.progress.position;
        }
    }
    return sum;
}

JobProgress::Entry* JobProgress::find(StreamId stream, std::uint64_t epoch) {
    const auto found = entries_.find(stream);
    const bool is_current = found != entries_.end() && found->second.progress.epoch == epoch;
    return is_current ? &found->second : nullptr;
}

// Forgets the rank's streams that have no connection; if the table is full, those of all ranks.
void JobProgress::forget_ended(std::uint32_t rank) {
    const bool is_full = entries_.size() >= kStreamsMax;
    std::erase_if(entries_, [&](const auto& entry) {
        return (is_full || entry.second.rank == rank) && !connections_.contains(entry.first);
    });
}

}  // namespace stoker::sidecar
