#include "sidecar/store/segment_files.h"

#include <algorithm>

#include "common/domain/node_directory.h"

namespace stoker::sidecar {

Result<std::shared_ptr<DeviceFile>> SegmentFiles::open(domain::SegmentSeq seq) {
    auto recent = recent_.lock();
    const auto at = std::ranges::find(*recent, seq, &Entry::first);
    if (at != recent->end()) {
        recent->splice(recent->begin(), *recent, at);
        return recent->front().second;
    }
    STOKER_TRY(auto file, device_.open(join_path(directory_, domain::segment_file(seq))));
    recent->emplace_front(seq, std::move(file));
    if (recent->size() > kOpenMax) {
        recent->pop_back();
    }
    return recent->front().second;
}

void SegmentFiles::forget(domain::SegmentSeq seq) {
    recent_.lock()->remove_if([&](const Entry& entry) { return entry.first == seq; });
}

}  // namespace stoker::sidecar
