#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/domain/residency_table.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The file `residency.<revision>`, mapped by its one writer. Readers of other processes keep their
// maps of it when the leader changes, so a valid existing file is reused in place, never replaced.
// Its blocks are allocated at creation: a store into the map on a full disk would raise SIGBUS.
// Thread-safe: words are atomic; the caller orders its stores after the bytes that they point to.
class ResidencyFile {
public:
    // Maps the file of `header`; creates it (all samples absent) if it is missing, damaged or of
    // another size.
    static Result<std::unique_ptr<ResidencyFile>> open(
        Device& device, const std::string& directory, const domain::ResidencyHeader& header);

    [[nodiscard]] std::uint64_t load(domain::SampleId sample) const;  // acquire

    void store(domain::SampleId sample, std::uint64_t word);  // release

    // Whether open() found the last leader's file and kept its words.
    [[nodiscard]] bool existed() const { return existed_; }

private:
    ResidencyFile(std::unique_ptr<DeviceMapping> mapping, std::uint64_t sample_count, bool existed)
        : mapping_(std::move(mapping)),
          sample_count_(sample_count),
          existed_(existed) {}

    [[nodiscard]] std::uint64_t& word(domain::SampleId sample) const;

    std::unique_ptr<DeviceMapping> mapping_;
    std::uint64_t sample_count_;
    bool existed_;
};

}  // namespace stoker::sidecar
