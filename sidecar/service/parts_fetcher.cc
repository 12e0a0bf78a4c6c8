#include "sidecar/service/parts_fetcher.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/crc32c.h"

namespace stoker::sidecar {

using domain::SampleId;

PartsFetcher::Limits PartsFetcher::limits_for(const EngineLimits& engine) {
    constexpr std::uint64_t kPartsMin = 4;   // so many hide the origin's latency
    constexpr std::uint64_t kPartsMax = 16;  // more would take slots of small samples
    constexpr Bytes kPartBytesMax = mib(8);
    const std::uint64_t memory = engine.parts_memory().count();
    const std::uint64_t part =
        std::clamp(memory / kPartsMin, std::uint64_t{1}, kPartBytesMax.count());
    const std::uint64_t parts = std::clamp(memory / part, std::uint64_t{1}, kPartsMax);
    return {Bytes{part}, static_cast<std::uint32_t>(parts)};
}

PartsFetcher::PartsFetcher(
    const SidecarParts& parts,
    Origin& origin,
    NodeStore& store,
    const domain::ManifestView& manifest,
    Limits limits,
    Events events)
    : parts_(parts),
      origin_(origin),
      store_(store),
      manifest_(manifest),
      limits_(limits),
      events_(std::move(events)),
      tasks_(parts.loop) {}

void PartsFetcher::start(const StartFetch& fetch, TimePoint started_at, std::uint32_t attempts) {
    const auto info = manifest_.sample(SampleId{fetch.sample});
    auto sample = std::make_shared<Sample>();
    sample->end.fetch = fetch;
    sample->end.started_at = started_at;
    sample->object = {std::string{info.key}, std::string{info.etag}, info.size_bytes, attempts};
    samples_[fetch.sample] = sample;
    waiting_.push_back(std::move(sample));
    pump();
}

void PartsFetcher::stop(SampleIndex index) {
    const auto found = std::ranges::find(
        waiting_, index, [](const SamplePtr& sample) { return sample->end.fetch.sample; });
    if (found == waiting_.end()) {
        return;
    }
    const SamplePtr sample = *found;
    waiting_.erase(found);
    sample->end.is_stopped = true;
    sample->end.origin = fail(ErrorCode::kCancelled, "the fetch was stopped");
    if (sample->running == 0 && !sample->is_opening) {
        finish(sample);
    }
}

void PartsFetcher::stop() {
    while (!waiting_.empty()) {
        stop(waiting_.front()->end.fetch.sample);
    }
}

void PartsFetcher::drop_unfinished() {
    for (const auto& [index, sample] : samples_) {
        sample->writer.reset();
    }
}

void PartsFetcher::pump() {
    while (running_ < limits_.parts_max) {
        const SamplePtr sample = next();
        if (sample == nullptr) {
            return;
        }
        if (sample->writer == nullptr) {
            open(sample);
            continue;
        }
        request_next(sample);
        if (sample->requested_bytes == sample->object.size_bytes) {
            std::erase(waiting_, sample);
        }
    }
}

// The next sample to open, or to request a part of; nullptr: none.
PartsFetcher::SamplePtr PartsFetcher::next() const {
    for (const bool urgent : {true, false}) {
        const auto found = std::ranges::find_if(waiting_, [&](const SamplePtr& sample) {
            const SampleIndex index = sample->end.fetch.sample;
            return !sample->is_opening && events_.is_urgent(index) == urgent &&
                   (sample->writer == nullptr ||
                    events_.take_part(index, next_part_bytes(*sample)));
        });
        if (found != waiting_.end()) {
            return *found;
        }
    }
    return nullptr;
}

Bytes PartsFetcher::next_part_bytes(const Sample& sample) const {
    return std::min(limits_.part_bytes, Bytes{sample.object.size_bytes - sample.requested_bytes});
}

// Allocates the sample's place on the disk.
void PartsFetcher::open(const SamplePtr& sample) {
    sample->is_opening = true;
    parts_.io.post([this, sample] {
        const StartFetch& fetch = sample->end.fetch;
        auto opened = store_.begin(SampleId{fetch.sample}, fetch.segment_class);
        if (opened) {
            sample->writer = *std::move(opened);
        } else {
            sample->end.store = fail(opened.error());
        }
        tasks_.post([this, sample] { on_opened(sample); });
    });
}

void PartsFetcher::on_opened(const SamplePtr& sample) {
    sample->is_opening = false;
    if (!sample->end.store || !sample->end.origin) {
        give_up(sample);
        finish(sample);
    }
    pump();
}

void PartsFetcher::request_next(const SamplePtr& sample) {
    const std::uint64_t offset = sample->requested_bytes;
    OriginFetch wanted = sample->object;
    wanted.size_bytes = next_part_bytes(*sample).count();
    wanted.slice = OriginSlice{offset, sample->object.size_bytes};
    sample->requested_bytes += wanted.size_bytes;
    const Part part{sample, sample->checksums.size(), offset, parts_.loop.now()};
    sample->checksums.push_back(0);
    ++sample->running;
    ++running_;
    origin_.fetch(std::move(wanted), [this, part](Result<OriginBytes> bytes) {
        on_answer(part, std::move(bytes));
    });
}

// Runs on a thread of the origin. Frees the part's memory before the loop learns of its end.
void PartsFetcher::on_answer(Part part, Result<OriginBytes> bytes) {
    if (!bytes) {
        tasks_.post([this, part = std::move(part), error = bytes.error()] {
            on_failed(part.sample, error);
            end_part(part.sample);
        });
        return;
    }
    part.arrived_at = parts_.loop.now();
    const auto shared = std::make_shared<OriginBytes>(*std::move(bytes));
    parts_.io.post([this, part = std::move(part), shared] {
        const std::uint32_t crc32c = stoker::crc32c(shared->payload);
        const Status written = part.sample->writer->write(part.offset, shared->payload);
        shared->payload = {};
        tasks_.post([this, part, shared, crc32c, written] {
            on_written(part, written, crc32c, *shared);
            end_part(part.sample);
        });
    });
}

void PartsFetcher::on_failed(const SamplePtr& sample, const Error& error) {
    ++sample->end.requests;
    if (sample->end.origin) {
        sample->end.origin = fail(error);
    }
    give_up(sample);
}

void PartsFetcher::on_written(
    const Part& part, const Status& written, std::uint32_t crc32c, const OriginBytes& bytes) {
    Sample& sample = *part.sample;
    sample.end.requests += bytes.requests;
    sample.end.attempts = std::max(sample.end.attempts, bytes.attempts);
    sample.stored_crc32c = bytes.stored_crc32c;
    sample.checksums[part.index] = crc32c;
    if (written) {
        events_.on_part({part.arrived_at - part.asked_at, parts_.loop.now() - part.arrived_at});
    } else {
        sample.end.store = written;
        give_up(part.sample);
    }
}

void PartsFetcher::end_part(const SamplePtr& sample) {
    --running_;
    const bool is_waiting = std::ranges::count(waiting_, sample) > 0;
    if (--sample->running == 0 && !is_waiting) {
        finish(sample);
    }
    pump();
}

void PartsFetcher::give_up(const SamplePtr& sample) {
    std::erase(waiting_, sample);
}

// Publishes a complete sample, or frees the space of a sample that was given up.
void PartsFetcher::finish(const SamplePtr& sample) {
    parts_.io.post([this, sample] {
        Ended& end = sample->end;
        if (end.origin && end.store) {
            const std::uint32_t found = checksum(*sample);
            end.is_damaged = found != sample->stored_crc32c.value_or(found);
            if (!end.is_damaged) {
                const auto stored = sample->writer->finish(found);
                end.store = stored ? Status{} : Status{fail(stored.error())};
            }
        }
        sample->writer.reset();
        tasks_.post([this, sample] {
            samples_.erase(sample->end.fetch.sample);
            events_.on_end(sample->end);
        });
    });
}

std::uint32_t PartsFetcher::checksum(const Sample& sample) const {
    std::uint32_t whole = 0;
    std::uint64_t left = sample.object.size_bytes;
    for (const std::uint32_t part : sample.checksums) {
        const std::uint64_t part_bytes = std::min(limits_.part_bytes.count(), left);
        whole = crc32c_combine(whole, part, part_bytes);
        left -= part_bytes;
    }
    return whole;
}

}  // namespace stoker::sidecar
