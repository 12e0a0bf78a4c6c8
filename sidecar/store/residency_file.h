#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/domain/residency_table.h"
#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The file `residency.<revision>`, mapped by its one writer. Readers of other processes keep maps
// of the same file over a change of leader, so an existing good file is taken over in place, never
// replaced. Its blocks are allocated when it is made: a store into the map must not find the disk
// full (that would be a SIGBUS). Thread-safe: words are atomic; the caller orders its stores after
// the bytes that they point to.
class ResidencyFile {
public:
    // Maps the file of `header`, made anew (all absent) when there is none, or one that is damaged
    // or of another shape.
    static Result<std::unique_ptr<ResidencyFile>> open(
        Device& device, const std::string& directory, const domain::ResidencyHeader& header);

    [[nodiscard]] std::uint64_t load(domain::SampleId sample) const;  // acquire

    void store(domain::SampleId sample, std::uint64_t word);  // release

    // Its words were those of the last leader when it was opened.
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
