#pragma once

#include <cstdint>
#include <vector>

#include "common/base/bytes.h"
#include "sidecar/advise/trace.h"

namespace stoker::advise {

enum class Pattern : std::uint8_t {
    kOnePass,          // hardly any sample is read again
    kEachOnce,         // passes that read each sample once
    kWithReplacement,  // random draws in which all samples are equally likely
    kSkewed,           // some samples are read far more often than others
};

// The access pattern of a trace.
struct Shape {
    Pattern pattern = Pattern::kOnePass;
    bool same_order = false;      // with kEachOnce: later passes repeat the first one's order
    bool each_reads_all = false;  // with kEachOnce: every reader passes over all samples
    std::uint64_t samples = 0;
    Bytes dataset_bytes{};  // sum over the samples, each once
    std::uint64_t reads = 0;
    Bytes read_bytes{};
    std::uint32_t readers = 0;
    double epochs = 1;         // passes or recorded epochs; otherwise reads per sample
    double hottest_share = 0;  // share of the reads that go to the tenth of the samples read most
    double seconds = 0;        // from the first to the last read; 0: the trace's times are unusable

    // The rate of all readers together; 0: unknown.
    [[nodiscard]] double reads_per_second() const {
        return seconds > 0 ? static_cast<double>(reads) / seconds : 0;
    }
};

// Describes the pattern of a trace. O(reads). Pure.
Shape describe(const Trace& trace);

// The trace's reads for the simulator, by reader and epoch. Reads of readers beyond `most`, and of
// readers with less than a hundredth of the busiest one's reads, are assigned to the others. Epochs
// are the recorded ones; otherwise equal parts if each sample is read once an epoch; otherwise
// there is one. Every reader has the same number of epochs; some may be empty.
std::vector<std::vector<std::vector<SampleIndex>>> by_reader(
    const Trace& trace, const Shape& shape, std::uint32_t most);

}  // namespace stoker::advise
