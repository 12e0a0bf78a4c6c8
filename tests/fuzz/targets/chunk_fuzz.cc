// Headers of chunks and the index that others wrote. The first byte chooses the parser and whether
// the checksum at the end is corrected.
#include <cstring>

#include "common/base/crc32c.h"
#include "common/domain/chunk_format.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

namespace {

void sign(std::span<std::byte> bytes) {
    const std::uint32_t sum = crc32c(bytes.first(bytes.size() - sizeof(std::uint32_t)));
    std::memcpy(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum));
}

domain::ChunkHeader header(std::uint32_t number) {
    return {
        {domain::PackId{5}, domain::PackOrder::kRandom, 7, 2},
        number,
        {{"cat/" + std::to_string(number), 3, 1}, {"dog/" + std::to_string(number), 0, 0}}};
}

void check_header(std::span<const std::byte> bytes) {
    if (const auto parsed = domain::parse_chunk_header(bytes)) {
        const auto again = domain::encode_chunk_header(*parsed);
        expect(again.has_value(), "a parsed header can be written");
        expect(again->size() <= bytes.size(), "a header is not longer than its bytes");
        expect(
            std::memcmp(again->data(), bytes.data(), again->size()) == 0,
            "a header has one encoding");
    }
}

void check_index(std::span<const std::byte> bytes) {
    if (const auto headers = domain::parse_chunk_index(bytes)) {
        expect(domain::check_pack(*headers).has_value(), "an index describes a whole pack");
    }
}

}  // namespace

void run(std::span<const std::byte> input) {
    if (input.empty()) {
        return;
    }
    const auto mode = std::to_integer<unsigned>(input[0]);
    // A separate copy, so that the sanitizer knows its end.
    std::vector<std::byte> bytes{input.begin() + 1, input.end()};
    if ((mode & 1U) != 0 && bytes.size() > sizeof(std::uint32_t)) {
        sign(bytes);
    }
    (mode & 2U) != 0 ? check_index(bytes) : check_header(bytes);
    if (const auto place = domain::parse_place(text_of(bytes))) {
        expect(domain::parse_place(domain::encode_place(*place)) == place, "a place reads back");
    }
}

std::vector<std::string> seeds() {
    const auto one = domain::encode_chunk_header(header(0)).value();
    const auto index = domain::encode_chunk_index({header(0), header(1)});
    return {
        "\x01" + string_of(one),
        "\x03" + string_of(index),
        std::string(1, '\0') + "chunk:7:4160:1a2b3c4d:4194304:etag"};
}

}  // namespace stoker::fuzz
