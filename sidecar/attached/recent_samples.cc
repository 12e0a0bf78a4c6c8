#include "sidecar/attached/recent_samples.h"

#include <algorithm>

namespace stoker::attached {

namespace {

constexpr std::uint64_t kUnreadPart = 64;  // 1/64: programs skip magic numbers and padding

}  // namespace

void RecentSamples::keep(
    domain::SampleId id,
    std::span<const std::byte> payload,
    std::uint64_t range_bytes,
    TimePoint now) {
    if (payload.size() > bytes_max_ || take_range(id, range_bytes, now)) {
        return;
    }
    auto copy = std::make_shared<const std::vector<std::byte>>(payload.begin(), payload.end());
    const auto entries = entries_.lock();
    while (entries->bytes + payload.size() > bytes_max_) {
        drop(*entries, entries->oldest_first.begin());
    }
    entries->bytes += payload.size();
    entries->oldest_first.push_back({id, now, range_bytes, std::move(copy)});
}

std::optional<client::SampleView> RecentSamples::take_range(
    domain::SampleId id, std::uint64_t range_bytes, TimePoint now) {
    const auto entries = entries_.lock();
    drop_old(*entries, now);
    const auto found = std::ranges::find(entries->oldest_first, id, &Entry::id);
    if (found == entries->oldest_first.end()) {
        return std::nullopt;
    }
    client::SampleView view{*found->payload, found->payload, {}};
    found->sent_bytes += range_bytes;
    const std::uint64_t unread_max = view.bytes.size() / kUnreadPart;
    if (found->sent_bytes + unread_max >= view.bytes.size()) {
        drop(*entries, found);
    }
    return view;
}

void RecentSamples::drop_old(TimePoint now) {
    drop_old(*entries_.lock(), now);
}

void RecentSamples::drop(Entries& entries, std::list<Entry>::iterator entry) {
    entries.bytes -= entry->payload->size();
    entries.oldest_first.erase(entry);
}

void RecentSamples::drop_old(Entries& entries, TimePoint now) {
    while (!entries.oldest_first.empty() &&
           now - entries.oldest_first.front().fetched > kRecentAge) {
        drop(entries, entries.oldest_first.begin());
    }
}

}  // namespace stoker::attached
