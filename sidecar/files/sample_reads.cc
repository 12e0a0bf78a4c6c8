#include "sidecar/files/sample_reads.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/log/log.h"
#include "sidecar/origin/fetch_all.h"

namespace stoker::files {

// A range that several samples (blocks) have parts of.
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
    const Clock& clock)
    : dataset_(dataset),
      files_(std::move(files)),
      origin_(origin),
      pool_(pool),
      clock_(clock) {}

void SampleReads::read(
    const domain::StoredObject& object,
    std::uint64_t offset,
    std::uint64_t length,
    OnBytes on_bytes) {
    const attached::ObjectParts parts{object, offset, length};
    if (parts.size() == 1) {
        const attached::ObjectParts::Part part = parts[0];
        read_part({part.id, part.sample_bytes, part.offset, part.length}, std::move(on_bytes));
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
    read_part({part.id, part.sample_bytes, part.offset, part.length}, [this, read](auto bytes) {
        if (!bytes) {
            read->on_bytes(std::nullopt);
            return;
        }
        read->bytes.insert(read->bytes.end(), bytes->begin(), bytes->end());
        read_next(read);
    });
}

void SampleReads::read_part(const Wanted& wanted, OnBytes on_bytes) {
    if (const auto found = files_->read_checked(wanted.id)) {
        dataset_.count_hit(wanted.id, wanted.length, wanted.offset == 0);
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
        dataset_, files_, wanted.id, wanted.sample_bytes, [this, id = wanted.id](auto answer) {
            finish(id, std::move(answer));
        });
}

bool SampleReads::give_held(const Wanted& wanted, const OnBytes& on_bytes) {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> pin;
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
        found->read_bytes += wanted.length;
        found->last_read = clock_.now();
        if (found->read_bytes >= found->bytes.size()) {
            samples->oldest_first.erase(found);
        }
    }
    dataset_.count_fetched(wanted.length, wanted.offset == 0);
    on_bytes(bytes);
    return true;
}

void SampleReads::finish(domain::SampleId id, attached::FetchPool::Answer answer) {
    std::vector<Waiter> waiters;
    if (answer.found && !answer.found->is_kept) {
        const auto& view = answer.found->view;
        const bool is_copy = !answer.found->record_offset;
        hold({id, 0, view.bytes, view.pin, is_copy ? view.bytes.size() : 0, 0, clock_.now()});
    }
    {
        const auto samples = samples_.lock();
        const auto found = std::ranges::find(samples->fetching, id, &Fetching::id);
        waiters = std::move(found->waiters);
        samples->fetching.erase(found);
    }
    const bool is_hit = answer.source == "hit";
    for (const Waiter& waiter : waiters) {
        const bool is_begun = waiter.wanted.offset == 0;
        if (!answer.found) {
            give_from_origin(waiter);
        } else if (is_hit) {
            dataset_.count_hit(id, waiter.wanted.length, is_begun);
            give(waiter, *answer.found);
        } else if (answer.found->is_kept || !give_held(waiter.wanted, waiter.on_bytes)) {
            dataset_.count_fetched(waiter.wanted.length, is_begun);
            give(waiter, *answer.found);
        }
    }
}

void SampleReads::give(const Waiter& waiter, const Found& found) {
    waiter.on_bytes(found.view.bytes.subspan(waiter.wanted.offset, waiter.wanted.length));
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
            "neither the sidecar nor the origin gives a sample",
            {{"key", sample.key}, {"error", fetched.error().message}});
        waiter.on_bytes(std::nullopt);
        return;
    }
    if (wanted.offset == 0) {
        dataset_.count_forwarded();
    }
    const auto held = std::make_shared<const std::vector<std::byte>>(std::move(fetched->payload));
    if (held->size() > wanted.length) {
        hold({wanted.id, begin, *held, held, held->size(), wanted.length, clock_.now()});
    }
    waiter.on_bytes(std::span{*held}.subspan(wanted.offset - begin, wanted.length));
}

void SampleReads::hold(Held held) {
    const auto samples = samples_.lock();
    std::uint64_t copied = held.copied_bytes;
    for (const Held& other : samples->oldest_first) {
        copied += other.copied_bytes;
    }
    samples->oldest_first.push_back(std::move(held));
    while (copied > kCopiedBytesMax && samples->oldest_first.size() > 1) {
        copied -= samples->oldest_first.front().copied_bytes;
        samples->oldest_first.pop_front();
    }
}

void SampleReads::drop_old() {
    const TimePoint now = clock_.now();
    samples_.lock()->oldest_first.remove_if(
        [now](const Held& held) { return now - held.last_read > kHeldAge; });
}

}  // namespace stoker::files
