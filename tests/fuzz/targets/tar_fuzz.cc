// Tar shards that others wrote. The first byte chooses whether checksums of headers are corrected.
#include <algorithm>

#include "common/domain/tar_index.h"
#include "tests/fuzz/targets/check_index.h"
#include "tests/support/tar_text.h"

namespace stoker::fuzz {

namespace {

void check_samples(const std::string& tar) {
    domain::TarIndex index{{"a.tar", tar.size(), "e"}};
    const auto bytes = std::as_bytes(std::span{tar});
    for (const domain::ListedObject& sample : check_index(index, tar, tar.size())) {
        const auto place = domain::parse_range_place(sample.key, sample.etag);
        const auto parsed =
            domain::parse_tar_sample(bytes.subspan(place->offset, sample.size_bytes));
        expect(parsed.has_value(), "a listed sample can be parsed");
    }
}

}  // namespace

void run(std::span<const std::byte> input) {
    if (input.empty()) {
        return;
    }
    std::string tar = string_of(input.subspan(1));
    if ((std::to_integer<unsigned>(input[0]) & 1U) != 0) {
        for (std::size_t at = 0; at + 512 <= tar.size(); at += 512) {
            const std::string header = tar.substr(at, 512);
            if (header[257] == 'u') {
                tar.replace(at, 512, test::tar_signed(header));
            }
        }
    }
    check_samples(tar);
    std::vector<std::byte> slice{input.begin() + 1, input.end()};
    if (const auto sample = domain::parse_tar_sample(slice)) {
        for (const domain::TarSampleMember& member : sample->members) {
            expect(member.offset <= slice.size(), "a member begins in its sample");
            expect(member.size_bytes <= slice.size() - member.offset, "a member ends in it");
        }
    }
}

std::vector<std::string> seeds() {
    const std::string pax = test::tar_member("x", test::pax_record("path", "b/2.jpg"), 'x');
    return {
        std::string(1, '\0') + test::tar_member("1.jpg", "one") + test::tar_member("1.cls", "1"),
        "\x01" + pax + test::tar_member("n", "two") + test::tar_end(),
        "\x01" + test::tar_member("L", "c/3.jpg", 'L') + test::tar_member("n", "three")};
}

}  // namespace stoker::fuzz
