#include "sidecar/origin/chunk_reads.h"

#include <algorithm>

#include "common/base/check.h"

namespace stoker::sidecar {

namespace {

constexpr double kKept = 0.875;  // weight of the earlier reads

double seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

std::uint64_t end_of(const ChunkPart& part) {
    return part.offset + part.size_bytes;
}

}  // namespace

void GapLimit::note(Duration first_byte, Duration whole, std::uint64_t bytes) {
    const double waited = seconds(first_byte);
    first_byte_ = received_ == 0 ? waited : kKept * first_byte_ + (1 - kKept) * waited;
    seconds_ = kKept * seconds_ + std::max(seconds(whole - first_byte), 0.0);
    received_ = kKept * received_ + static_cast<double>(bytes);
}

std::uint64_t GapLimit::bytes() const {
    const double most = static_cast<double>(kGapBytesMax);
    if (received_ == 0) {
        return 0;
    }
    if (received_ * first_byte_ >= most * seconds_) {
        return kGapBytesMax;  // the same if nothing took measurable time
    }
    return static_cast<std::uint64_t>(received_ * first_byte_ / seconds_);
}

void ChunkReads::add(const ChunkObject& chunk, ChunkPart part) {
    STOKER_CHECK(part.size_bytes > 0, "a part must have at least one byte");
    auto [found, is_new] = waiting_.try_emplace(chunk);
    if (is_new) {
        order_.push_back(chunk);
    }
    found->second.push_back(part);
}

std::optional<ChunkRead> ChunkReads::next(std::uint64_t gap_max) {
    if (order_.empty() || running_ >= limits_.reads_max) {
        return std::nullopt;
    }
    const auto chunk = waiting_.find(order_.front());
    std::vector<ChunkPart>& parts = chunk->second;
    if (!std::ranges::is_sorted(parts)) {
        std::ranges::sort(parts);
    }
    const std::uint64_t begin = parts.front().offset;
    std::uint64_t end = begin;
    std::uint64_t wanted = 0;
    auto last = parts.begin();
    for (; last != parts.end(); ++last) {
        const std::uint64_t gap = last->offset - std::min(last->offset, end);
        const std::uint64_t longer = std::max(end, end_of(*last)) - begin;
        const bool is_first = last == parts.begin();
        if (!is_first && (gap > gap_max || longer > limits_.read_bytes_max ||
                          longer > 2 * (wanted + last->size_bytes))) {
            break;
        }
        wanted += last->size_bytes;
        end = begin + longer;
    }
    ChunkRead read{chunk->first, begin, end - begin, {parts.begin(), last}};
    parts.erase(parts.begin(), last);
    if (parts.empty()) {
        waiting_.erase(chunk);
        order_.pop_front();
    }
    ++running_;
    return read;
}

}  // namespace stoker::sidecar
