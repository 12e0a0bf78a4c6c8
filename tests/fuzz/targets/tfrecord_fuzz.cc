// Files of TFRecords that others wrote. The first byte chooses whether the CRCs of lengths are corrected.
#include <algorithm>
#include <cstring>

#include "common/base/crc32c.h"
#include "common/domain/tfrecord_index.h"
#include "tests/fuzz/targets/check_index.h"
#include "tests/support/tfrecord_text.h"

namespace stoker::fuzz {

namespace {

// Corrects the CRC of each length, as long as records follow each other.
void correct(std::string& file) {
    constexpr std::size_t kHeader = domain::TfRecordIndex::kHeaderBytes;
    constexpr std::size_t kFooter = domain::TfRecordIndex::kFooterBytes;
    for (std::size_t at = 0; file.size() - at >= kHeader;) {
        std::uint64_t length = 0;
        std::memcpy(&length, file.data() + at, sizeof length);
        file.replace(at, kHeader, test::tfrecord_header(length));
        if (length > file.size() - at - kHeader || file.size() - at - kHeader - length < kFooter) {
            return;
        }
        at += kHeader + length + kFooter;
    }
}

}  // namespace

void run(std::span<const std::byte> input) {
    if (input.empty()) {
        return;
    }
    std::string file = string_of(input.subspan(1));
    if ((std::to_integer<unsigned>(input[0]) & 1U) != 0) {
        correct(file);
    }
    domain::TfRecordIndex index{{"a.tfrecord", file.size(), "e"}};
    check_index(index, file, file.size());
}

std::vector<std::string> seeds() {
    return {
        std::string(1, '\0') + test::tfrecord("one") + test::tfrecord(""),
        "\x01" + test::tfrecord(std::string(5000, 'x')) + test::tfrecord("two")};
}

}  // namespace stoker::fuzz
