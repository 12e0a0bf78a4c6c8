// The part of FetchEngine that fetches samples before a client asks for them.
#include <algorithm>

#include "sidecar/core/fetch_engine.h"

namespace stoker::sidecar {

using Verdict = CacheRoom::Verdict;

namespace {

// Whether a chunk should be fetched ahead into the room that is left: the whole chunk fits, or a
// quarter of all room is left. With less room, each sample that leaves would cause a request for
// only one or two samples.
bool is_worth(Bytes chunk, Bytes left, Bytes all) {
    return left >= std::min(chunk, Bytes{all.count() / 4});
}

}  // namespace

FetchEngine::Turn FetchEngine::prefetch_one(Party party, std::uint32_t& steps, TimePoint now) {
    // Reserves some slots, so that demands do not wait behind prefetches.
    const std::uint32_t slots = limits_.max_in_flight - limits_.max_in_flight / 8;
    const bool may_read_origin = admission_.origin.allows(now) && admission_.rate.allows(now);
    if (!shares_.has_slot(party, slots) || (!may_read_origin && table_.placement() == nullptr)) {
        return Turn::kDone;
    }
    const auto wanted = [this, now](SampleIndex sample) { return room_.wants(sample, now); };
    const auto candidate = streams_.nearest(wanted, steps, party);
    if (!candidate || !(may_read_origin || comes_from_peer(candidate->sample, party))) {
        return Turn::kDone;
    }
    const auto reader = chunk_reader(candidate->sample, party);
    if (!fits_ahead(candidate->sample, party, reader.has_value()) ||
        (reader && !has_room_for_chunk(candidate->sample))) {
        return Turn::kDone;
    }
    const Verdict verdict = room_.make_room(candidate->sample, now, false, party);
    if (!start(candidate->sample, verdict, party, now)) {
        return Turn::kDone;
    }
    if (book_.party_count() > 1) {
        streams_.take(*candidate);  // before another party's turn could evict it
    }
    note_origin_start(candidate->sample);
    if (reader) {
        start_chunk(candidate->sample, *reader, now);
    }
    return Turn::kGoOn;
}

// The stream for which the sample's chunk is fetched together with it. None for guests: a chunk
// would exceed their slots. None for samples of other owners: peers send these one by one.
std::optional<StreamId> FetchEngine::chunk_reader(SampleIndex sample, Party party) const {
    return chunks_ != nullptr && party == kOwnParty && table_.is_own(sample)
               ? streams_.chunk_reader(sample)
               : std::nullopt;
}

// Whether memory has room for the fetch. A chunk waits for room for all of it, or for half of all
// memory; else each payload that leaves would cause a request for the few samples that then fit.
bool FetchEngine::fits_memory(SampleIndex sample, Party party, bool with_chunk) const {
    if (is_in_parts(sample, party)) {
        return shares_.has_parts_memory(party);
    }
    const Bytes chunk = with_chunk ? chunks_->bytes(chunks_->of(sample)) : Bytes::zero();
    return shares_.has_memory(
        party,
        std::max(table_.payload_bytes(sample), std::min(chunk, Bytes{limits_.memory.count() / 2})));
}

// Does what fits_memory() does, for a sample that no client waits for.
bool FetchEngine::fits_ahead(SampleIndex sample, Party party, bool with_chunk) const {
    return fits_memory(sample, party, with_chunk) &&
           (!is_in_parts(sample, party) || has_place(party, false));
}

bool FetchEngine::has_room_for_chunk(SampleIndex sample) const {
    const ByteAccount& account = table_.account();
    return is_worth(
        chunks_->bytes(chunks_->of(sample)),
        (room_.window() - account.window) + (grant().resident_bytes - account.resident),
        room_.window() + grant().resident_bytes);
}

// Fetches the other samples of the chunk that the reader needs, except samples of other owners, and
// those that could only be stored in place of samples needed sooner.
void FetchEngine::start_chunk(SampleIndex first, StreamId reader, TimePoint now) {
    const Bytes room = room_.window() + (grant().resident_bytes - table_.account().resident);
    const std::uint64_t mean = table_.sizes().total().count() / table_.sizes().count();
    const std::uint64_t reach = room.count() / std::max(mean, std::uint64_t{1});
    const auto chunk = chunks_->samples(chunks_->of(first));
    for (const SampleIndex sample : streams_.take_chunk(reader, chunk, reach)) {
        if (!table_.is_own(sample) || !room_.wants(sample, now)) {
            continue;
        }
        if (!admission_.origin.allows(now) || !admission_.rate.allows_urgent(now) ||
            !fits_ahead(sample, kOwnParty, false) ||
            !start(sample, room_.make_room(sample, now, false, kOwnParty), kOwnParty, now, true)) {
            return;
        }
        note_origin_start(sample);
    }
}

}  // namespace stoker::sidecar
