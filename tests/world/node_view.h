#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/domain/ids.h"
#include "common/domain/segment_format.h"
#include "tests/support/fault_device.h"

namespace stoker::world {

// A trainer's view of a node directory's data/: finds samples by the residency table, as the client
// library does, but reads instead of mapping. Keeps the table and the segments open. Not
// thread-safe.
class NodeView {
public:
    NodeView(test::FaultDevice& disk, std::string data_folder, domain::RevisionId revision);

    // Opens the table anew, because the leader may have made a new file.
    void refresh();

    // Whether the table says that the sample is on the node.
    [[nodiscard]] bool is_present(std::uint64_t sample) const { return word(sample) != 0; }

    // The sample's entry in the residency table; 0: absent.
    [[nodiscard]] std::uint64_t word(std::uint64_t sample) const;

    // Whether the sample's record begins where the table says: cheaper than read().
    [[nodiscard]] bool has_header(std::uint64_t sample) { return find(sample).has_value(); }

    // The sample's bytes; nullopt: absent, or damaged according to its checksum.
    [[nodiscard]] std::optional<std::vector<std::byte>> read(std::uint64_t sample);

private:
    // A record on the disk.
    struct Record {
        sidecar::DeviceFile* file = nullptr;
        std::uint64_t payload_offset = 0;
        domain::RecordHeader header;
    };

    [[nodiscard]] std::optional<Record> find(std::uint64_t sample);
    sidecar::DeviceFile* open_segment(domain::SegmentSeq seq);

    test::FaultDevice& disk_;
    std::string folder_;
    domain::RevisionId revision_;
    std::unique_ptr<sidecar::DeviceMapping> table_;
    std::map<domain::SegmentSeq, std::unique_ptr<sidecar::DeviceFile>> segments_;
};

}  // namespace stoker::world
