#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <linux/fuse.h>

namespace stoker::files {

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
    const auto part = std::as_bytes(std::span{&value, 1});
    bytes.insert(bytes.end(), part.begin(), part.end());
}

// A request of the kernel with a body of one struct.
template <class T>
std::vector<std::byte> fuse_request(
    std::uint32_t opcode, std::uint64_t unique, std::uint64_t node, const T& body) {
    fuse_in_header head{};
    head.len = sizeof head + sizeof body;
    head.opcode = opcode;
    head.unique = unique;
    head.nodeid = node;
    std::vector<std::byte> bytes;
    append(bytes, head);
    append(bytes, body);
    return bytes;
}

}  // namespace stoker::files
