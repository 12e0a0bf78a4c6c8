// A segment file on a damaged disk. The first byte chooses whether the reader trusts its footer.
#include "common/domain/segment_format.h"
#include "sidecar/store/node_store.h"
#include "sidecar/store/segment_scan.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/support/dataset.h"
#include "tests/support/fault_device.h"

namespace stoker::fuzz {

namespace {

using domain::SampleId;

const test::Dataset& dataset() {
    static const test::Dataset made = test::Dataset::random(12, 300, 1);
    return made;
}

void read_all(sidecar::DeviceFile& file, domain::SegmentSeq seq, sidecar::Trust trust) {
    const auto found = sidecar::scan_segment(file, seq, dataset().manifest(), trust);
    expect(found.has_value(), "a scan fails only on I/O errors");
    for (const domain::FooterEntry& record : found->records) {
        expect(
            record.sample.value() < dataset().manifest().sample_count(),
            "the sample is in the manifest");
        const auto payload = sidecar::read_record(file, seq, record);
        const bool good = sidecar::check_record(file, seq, record).has_value();
        expect(payload.has_value() == good, "exactly the good records can be read");
        expect(trust == sidecar::Trust::kFooter || good, "a record found by checksum is good");
    }
}

}  // namespace

void run(std::span<const std::byte> input) {
    if (input.empty()) {
        return;
    }
    test::FaultDevice device{1};
    device.put("/node/segment", {input.begin() + 1, input.end()});
    const auto file = device.open("/node/segment").value();
    const auto header = sidecar::read_segment_header(*file);
    const domain::SegmentSeq seq = header ? header->seq : domain::SegmentSeq{1};
    read_all(
        *file,
        seq,
        input[0] == std::byte{0} ? sidecar::Trust::kChecksums : sidecar::Trust::kFooter);
}

std::vector<std::string> seeds() {
    test::FaultDevice device{1};
    sidecar::StoreOptions options;
    options.directory = options.control_directory = "/node";
    options.segment_bytes = kib(4);
    options.window_segment_bytes = kib(4);
    options.reserved_free = 0;
    options.boot_id = "boot";
    auto store = sidecar::NodeStore::open(device, dataset().manifest(), options).value();
    for (std::uint64_t id = 0; id < dataset().manifest().sample_count(); ++id) {
        const auto as =
            id % 3 == 0 ? domain::SegmentClass::kWindow : domain::SegmentClass::kResident;
        (void)store->append(SampleId{id}, dataset().payload(SampleId{id}), as);
    }
    std::vector<std::string> result;
    for (const std::string& path : device.paths()) {
        if (path.find("seg") != std::string::npos) {
            result.push_back(
                std::string(1, static_cast<char>(result.size() % 2)) +
                string_of(*device.content(path)));
        }
    }
    return result;
}

}  // namespace stoker::fuzz
