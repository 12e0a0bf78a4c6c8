#include "sidecar/store/segment_numbers.h"

#include <algorithm>

#include "common/domain/node_directory.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kNumbersAhead = 1024;  // numbers per mark, to move it rarely
constexpr std::uint64_t kNumbersEnd = std::uint64_t{1} << 32U;

}  // namespace

Result<SegmentNumbers> SegmentNumbers::open(
    Device& device, const std::string& directory, std::uint64_t lowest) {
    STOKER_TRY(const auto names, device.list(join_path(directory, domain::kSegmentFolder)));
    SegmentNumbers numbers{device, directory};
    for (const std::string& name : names) {
        numbers.marked_ =
            std::max(numbers.marked_, domain::parse_sequence_mark_name(name).value_or(0));
    }
    numbers.next_ = std::max({lowest, numbers.marked_, std::uint64_t{1}});
    numbers.promised_ = numbers.next_;
    return numbers;
}

Result<domain::SegmentSeq> SegmentNumbers::next() {
    if (next_ >= kNumbersEnd) {
        return fail(
            ErrorCode::kResourceExhausted,
            "the node directory has used up its segment numbers; delete it while no job runs");
    }
    if (next_ >= promised_) {
        STOKER_TRY_VOID(promise(next_ + kNumbersAhead));
    }
    return domain::SegmentSeq{static_cast<std::uint32_t>(next_++)};
}

Status SegmentNumbers::promise(std::uint64_t number) {
    const auto made = device_->create(join_path(directory_, domain::sequence_mark_file(number)));
    if (!made.has_value() && made.error().code != ErrorCode::kAlreadyExists) {
        return fail(made.error());
    }
    STOKER_TRY_VOID(device_->sync_folder(join_path(directory_, domain::kSegmentFolder)));
    if (marked_ != 0 && marked_ != number) {
        // Removes older marks. A leftover one does no harm, because the highest counts.
        static_cast<void>(
            device_->unlink(join_path(directory_, domain::sequence_mark_file(marked_))));
    }
    marked_ = number;
    promised_ = number;
    return {};
}

}  // namespace stoker::sidecar
