#include "sidecar/files/sample_reads.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "client/src/core/mapped_file.h"
#include "common/domain/block_format.h"
#include "common/log/log.h"
#include "sidecar/origin/fetch_all.h"

namespace stoker::files {

// A read of a range that spans several samples (blocks).
struct SampleReads::LongRead {
    attached::ObjectParts parts;
    std::size_t next = 0;
    std::vector<std::byte> bytes;
    OnBytes on_bytes;
};

SampleReads::SampleReads(
    attached::CachedDataset& dataset,
    std::shared_ptr<attached::DatasetFiles> files,
    sidecar::Origin& origin,
    attached::FetchPool& pool,
    const Clock& clock,
    std::uint64_t copied_bytes_max)
    : dataset_(dataset),
      files_(std::move(files)),
      origin_(origin),
      pool_(pool),
      clock_(clock),
      copied_bytes_max_(copied_bytes_max) {}

void SampleReads::read(
    const domain::StoredObject& object,
    std::uint64_t offset,
    std::uint64_t length,
    OnBytes on_bytes) {
    const attached::ObjectParts parts{object, offset, length};
    if (parts.size() == 1) {
        const attached::ObjectParts::Part part = parts[0];
        read_part({part.id, part.offset, part.length}, std::move(on_bytes));
        return;
    }
    if (Bytes{object.block_bytes} < domain::kBlockBytesMin) {
        on_bytes(std::nullopt);
        return;
    }
    auto read = std::make_shared<LongRead>(LongRead{parts, 0, {}, std::move(on_bytes)});
    read->bytes.reserve(length);
    read_next(read);
}

void SampleReads::read_next(const std::shared_ptr<LongRead>& read) {
    if (read->next == read->parts.size()) {
        read->on_bytes(read->bytes);
        return;
    }
    const attached::ObjectParts::Part part = read->parts[read->next++];
    read_part({part.id, part.offset, part.length}, [this, read](auto bytes) {
        const std::size_t end = read->bytes.size();
        if (bytes) {
            read->bytes.resize(end + bytes->size());
        }
        // Copies with care: the bytes may be mapped, and a page of the segment may be unreadable.
        if (bytes &&
            client::copy_guarded(*bytes, std::span{read->bytes}.subspan(end), bytes->size())) {
            read_next(read);
        } else {
            read->on_bytes(std::nullopt);
        }
    });
}

void SampleReads::read_part(const Wanted& wanted, OnBytes on_bytes) {
    // Fails if a block in the middle of its object is shorter than it should be.
    if (wanted.offset + wanted.length > files_->manifest().size_bytes(wanted.id)) {
        on_bytes(std::nullopt);
        return;
    }
    if (const auto found = files_->read_checked(wanted.id)) {
        count(wanted, true);
        on_bytes(found->view.bytes.subspan(wanted.offset, wanted.length));
        return;
    }
    if (give_held(wanted, on_bytes)) {
        return;
    }
    {
        const auto samples = samples_.lock();
        const auto found = std::ranges::find(samples->fetching, wanted.id, &Fetching::id);
        if (found != samples->fetching.end()) {
            found->waiters.push_back({wanted, std::move(on_bytes)});
            return;
        }
        samples->fetching.push_back({wanted.id, {}});
        samples->fetching.back().waiters.push_back({wanted, std::move(on_bytes)});
    }
    pool_.get(
        dataset_,
        files_,
        wanted.id,
        files_->manifest().size_bytes(wanted.id),
        [this, id = wanted.id](auto answer) { finish(id, std::move(answer)); },
        memory_bytes(wanted.id));
}

// Memory for a fetch: a guest copies the sample; of a large object, one part is fetched.
std::uint64_t SampleReads::memory_bytes(domain::SampleId id) const {
    const std::uint64_t sample_bytes = files_->manifest().size_bytes(id);
    const sidecar::DatasetConfig& config = dataset_.config();
    const bool has_parts = config.source.format == domain::SampleFormat::kObjects;
    return config.guest || !has_parts ? sample_bytes : std::min(sample_bytes, kOriginPartBytes);
}

bool SampleReads::give_held(const Wanted& wanted, const OnBytes& on_bytes) {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> pin;
    bool is_hit = false;
    {
        const auto samples = samples_.lock();
        const auto found = std::ranges::find_if(samples->oldest_first, [&](const Held& held) {
            return held.id == wanted.id && wanted.offset >= held.begin &&
                   wanted.offset + wanted.length <= held.begin + held.bytes.size();
        });
        if (found == samples->oldest_first.end()) {
            return false;
        }
        bytes = found->bytes.subspan(wanted.offset - found->begin, wanted.length);
        pin = found->pin;
        is_hit = found->is_hit;
        found->read_bytes += wanted.length;
        found->last_read = clock_.now();
        if (found->read_bytes >= found->bytes.size()) {
            samples->oldest_first.erase(found);
        }
    }
    count(wanted, is_hit);
    on_bytes(bytes);
    return true;
}

void SampleReads::finish(domain::SampleId id, attached::FetchPool::Answer answer) {
    std::vector<Waiter> waiters;
    const bool is_hit = answer.source == "hit";
    const bool is_copy = answer.found && !answer.found->record_offset;
    // Keeps a copy for later reads, and also a mapped sample that the node does not keep. A mapped
    // sample that the node keeps is not held: later reads find it on the node.
    if (is_copy || (answer.found && !answer.found->is_kept && !is_hit)) {
        const auto& view = answer.found->view;
        hold({id, 0, view.bytes, view.pin, is_copy, is_hit, 0, clock_.now()});
    }
    {
        const auto samples = samples_.lock();
        const auto found = std::ranges::find(samples->fetching, id, &Fetching::id);
        waiters = std::move(found->waiters);
        samples->fetching.erase(found);
    }
    if (!answer.found && is_stopping_) {
        return;
    }
    for (const Waiter& waiter : waiters) {
        const Wanted& wanted = waiter.wanted;
        if (!answer.found) {
            give_from_origin(waiter);
        } else if (!give_held(wanted, waiter.on_bytes)) {
            count(wanted, is_hit);
            waiter.on_bytes(answer.found->view.bytes.subspan(wanted.offset, wanted.length));
        }
    }
}

void SampleReads::count(const Wanted& wanted, bool is_hit) {
    const bool is_begun = wanted.offset == 0;
    if (is_hit) {
        dataset_.count_hit(wanted.id, wanted.length, is_begun);
    } else {
        dataset_.count_fetched(wanted.length, is_begun);
    }
}

void SampleReads::give_from_origin(const Waiter& waiter) {
    const Wanted& wanted = waiter.wanted;
    if (give_held(wanted, waiter.on_bytes)) {
        return;
    }
    const domain::SampleInfo sample = files_->manifest().sample(wanted.id);
    sidecar::OriginFetch fetch{
        std::string{sample.key}, std::string{sample.etag}, sample.size_bytes};
    std::uint64_t begin = 0;
    const bool is_large = sample.size_bytes > kOriginPartBytes;
    if (is_large && dataset_.config().source.format == domain::SampleFormat::kObjects) {
        begin = wanted.offset;
        fetch.slice = sidecar::OriginSlice{begin, sample.size_bytes};
        fetch.size_bytes =
            std::min(std::max(kOriginPartBytes, wanted.length), sample.size_bytes - begin);
    }
    auto fetched = sidecar::fetch_one(origin_, std::move(fetch), {});
    if (!fetched) {
        log::warning(
            "neither the sidecar nor the origin delivered a sample",
            {{"key", sample.key}, {"error", fetched.error().message}});
        waiter.on_bytes(std::nullopt);
        return;
    }
    if (wanted.offset == 0) {
        dataset_.count_forwarded();
    }
    const auto held = std::make_shared<const std::vector<std::byte>>(std::move(fetched->payload));
    if (held->size() > wanted.length) {
        hold({wanted.id, begin, *held, held, true, false, wanted.length, clock_.now()});
    }
    waiter.on_bytes(std::span{*held}.subspan(wanted.offset - begin, wanted.length));
}

void SampleReads::hold(Held held) {
    const std::uint64_t bytes_max = held.is_copy ? copied_bytes_max_ : kMappedBytesMax;
    const auto samples = samples_.lock();
    std::list<Held>& all = samples->oldest_first;
    all.push_back(std::move(held));
    std::uint64_t bytes = 0;
    for (const Held& other : all) {
        bytes += other.is_copy == all.back().is_copy ? other.bytes.size() : 0;
    }
    for (auto at = all.begin(); bytes > bytes_max && at != std::prev(all.end());) {
        if (at->is_copy == all.back().is_copy) {
            bytes -= at->bytes.size();
            at = all.erase(at);
        } else {
            ++at;
        }
    }
}

void SampleReads::drop_old() {
    const TimePoint now = clock_.now();
    samples_.lock()->oldest_first.remove_if(
        [now](const Held& held) { return now - held.last_read > kHeldAge; });
}

}  // namespace stoker::files
