#include "sidecar/attached/sequential_reads.h"

#include <algorithm>

namespace stoker::attached {

std::optional<domain::SampleId> SequentialReads::note(
    const domain::StoredObject& object, std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t end = offset + length;
    const auto runs = newest_first_.lock();
    const auto known = std::ranges::find_if(
        *runs, [&](const Run& run) { return run.first == object.first && run.end == offset; });
    if (known == runs->end()) {
        runs->push_front({object.first, end});
        runs->resize(std::min(runs->size(), runs_max_));
        return std::nullopt;
    }
    runs->splice(runs->begin(), *runs, known);
    Run& run = runs->front();
    run.end = end;
    ++run.ranges;
    const std::uint64_t next = (end - 1) / object.block_bytes + 1;
    if (run.ranges < kRangesInARow || next >= object.sample_count || next <= run.asked_block) {
        return std::nullopt;
    }
    run.asked_block = next;
    return domain::SampleId{object.first.value() + next};
}

}  // namespace stoker::attached
