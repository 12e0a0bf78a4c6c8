#include "sidecar/attached/object_parts.h"

#include <algorithm>

namespace stoker::attached {

ObjectParts::ObjectParts(
    const domain::StoredObject& object, std::uint64_t offset, std::uint64_t length)
    : object_(object),
      begin_(offset),
      end_(offset + length),
      first_block_(offset / object.block_bytes),
      size_((end_ - 1) / object.block_bytes - first_block_ + 1) {}

ObjectParts::Part ObjectParts::operator[](std::size_t index) const {
    const std::uint64_t block = first_block_ + index;
    const std::uint64_t block_begin = block * object_.block_bytes;
    const std::uint64_t block_end = std::min(block_begin + object_.block_bytes, object_.size_bytes);
    const std::uint64_t begin = offset_of(index);
    return {
        domain::SampleId{object_.first.value() + block},
        block_end - block_begin,
        begin - block_begin,
        std::min(end_, block_end) - begin};
}

std::uint64_t ObjectParts::offset_of(std::size_t index) const {
    return std::max(begin_, (first_block_ + index) * object_.block_bytes);
}

}  // namespace stoker::attached
