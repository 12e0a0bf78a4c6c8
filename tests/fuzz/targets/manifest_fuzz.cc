// A peer's manifest. The first byte chooses whether the checksum is corrected; the reader stops at a
// wrong one.
#include <cstring>

#include "common/base/crc32c.h"
#include "common/domain/block_format.h"
#include "common/domain/manifest.h"
#include "common/domain/manifest_writer.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace stoker::fuzz {

namespace {

void sign(std::span<std::byte> bytes) {
    const std::uint32_t sum = crc32c(bytes.first(bytes.size() - sizeof(std::uint32_t)));
    std::memcpy(bytes.data() + bytes.size() - sizeof(sum), &sum, sizeof(sum));
}

// The address sanitizer detects reads beyond the buffer.
std::size_t read_everything(const domain::ManifestView& view) {
    std::size_t sum = 0;
    const auto read = [&sum](std::string_view text) {
        for (const char byte : text) {
            sum += static_cast<unsigned char>(byte);
        }
    };
    for (std::uint64_t id = 0; id < view.sample_count(); ++id) {
        const domain::SampleInfo sample = view.sample(domain::SampleId{id});
        read(sample.key);
        read(sample.etag);
        const domain::StoredObject object = domain::object_of(view, domain::SampleId{id});
        expect(
            object.first.value() <= id && id - object.first.value() < object.sample_count &&
                object.sample_count <= view.sample_count() - object.first.value(),
            "a sample is outside of its object, or the object outside of the manifest");
        read(object.key);
        read(object.etag);
    }
    for (std::uint32_t label = 0; label < view.label_count(); ++label) {
        read(view.label_name(label));
    }
    return sum;
}

}  // namespace

void run(std::span<const std::byte> input) {
    if (input.empty()) {
        return;
    }
    // A separate copy, so that the sanitizer knows its end.
    std::vector<std::byte> bytes{input.begin() + 1, input.end()};
    if (input[0] != std::byte{0} && bytes.size() > sizeof(std::uint32_t)) {
        sign(bytes);
    }
    if (const auto view = domain::ManifestView::open(bytes)) {
        expect(view->sample_count() <= bytes.size(), "a sample takes more than a byte");
        (void)read_everything(*view);
    }
}

std::vector<std::string> seeds() {
    std::vector<std::string> result;
    for (const std::uint64_t count : {1U, 3U, 20U}) {
        std::vector<domain::ListedObject> objects;
        for (std::uint64_t i = 0; i < count; ++i) {
            objects.push_back(
                {(i % 2 == 0 ? "cats/" : "dogs/old/") + std::to_string(i), i, "etag"});
        }
        const auto blocks = domain::list_blocks(domain::Listing::of(objects).value(), Bytes{4});
        for (const auto& listed : {objects, blocks.value().objects()}) {
            result.push_back("\x01" + string_of(domain::encode_manifest(listed).value()));
        }
    }
    return result;
}

}  // namespace stoker::fuzz
