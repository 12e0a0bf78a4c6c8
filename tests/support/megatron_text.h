#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/wire.h"

// Makes the index files of Megatron's datasets for tests.
namespace stoker::test {

struct MegatronText {
    std::string_view magic{"MMIDIDX\0\0", 9};
    std::uint64_t version = 1;
    std::uint8_t type = 8;  // uint16
    std::vector<std::int32_t> lengths{};
    std::vector<std::int64_t> offsets{};
    std::vector<std::int64_t> documents{0};
    bool has_modes = false;

    [[nodiscard]] std::string text() const {
        WireWriter out;
        out.put_text(magic).put(version).put(type);
        out.put(std::uint64_t{lengths.size()}).put(std::uint64_t{documents.size()});
        for (const std::int32_t length : lengths) {
            out.put(length);
        }
        for (const std::int64_t offset : offsets) {
            out.put(offset);
        }
        for (const std::int64_t document : documents) {
            out.put(document);
        }
        return out.text() + std::string(has_modes ? lengths.size() : 0, '\0');
    }
};

// An index of one sequence a document, `lengths` tokens of `token_bytes` each, without gaps.
inline MegatronText megatron_text(std::vector<std::int32_t> lengths, std::int64_t token_bytes = 2) {
    MegatronText index;
    std::int64_t offset = 0;
    for (const std::int32_t length : lengths) {
        index.offsets.push_back(offset);
        offset += length * token_bytes;
        index.documents.push_back(static_cast<std::int64_t>(index.offsets.size()));
    }
    index.lengths = std::move(lengths);
    return index;
}

}  // namespace stoker::test
