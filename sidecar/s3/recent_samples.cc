#include "sidecar/s3/recent_samples.h"

#include <algorithm>

namespace stoker::s3 {

void RecentSamples::keep(domain::SampleId id, std::span<const std::byte> payload, TimePoint now) {
    if (payload.size() > bytes_max_ || find(id, now)) {
        return;
    }
    auto copy = std::make_shared<const std::vector<std::byte>>(payload.begin(), payload.end());
    const auto entries = entries_.lock();
    while (entries->bytes + payload.size() > bytes_max_) {
        drop_first(*entries);
    }
    entries->bytes += payload.size();
    entries->oldest_first.push_back({id, now, std::move(copy)});
}

std::optional<client::SampleView> RecentSamples::find(domain::SampleId id, TimePoint now) {
    const auto entries = entries_.lock();
    drop_old(*entries, now);
    const auto found = std::ranges::find(entries->oldest_first, id, &Entry::id);
    if (found == entries->oldest_first.end()) {
        return std::nullopt;
    }
    return client::SampleView{*found->payload, found->payload, {}};
}

void RecentSamples::drop_old(TimePoint now) {
    drop_old(*entries_.lock(), now);
}

void RecentSamples::drop_first(Entries& entries) {
    entries.bytes -= entries.oldest_first.front().payload->size();
    entries.oldest_first.pop_front();
}

void RecentSamples::drop_old(Entries& entries, TimePoint now) {
    while (!entries.oldest_first.empty() &&
           now - entries.oldest_first.front().fetched > kRecentAge) {
        drop_first(entries);
    }
}

}  // namespace stoker::s3
