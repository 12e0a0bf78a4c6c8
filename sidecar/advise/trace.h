#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/domain/ids.h"

namespace stoker::advise {

using domain::SampleIndex;

inline constexpr std::uint32_t kNoEpoch = std::numeric_limits<std::uint32_t>::max();

struct Read {
    double seconds = 0;  // any origin of time, the same for all reads
    SampleIndex sample = 0;
    std::uint32_t epoch = kNoEpoch;  // as the program counted; kNoEpoch: not recorded
    std::uint32_t reader = 0;        // rank, or the host that an access log names
};

// Lines of a trace that are no reads.
struct RefusedLines {
    std::uint64_t count = 0;
    std::uint64_t first_line = 0;  // from 1
    std::string first_reason;
};

// The reads of a program. A sample is a key, or a key and an offset if parts of objects are read.
struct Trace {
    std::vector<std::uint64_t> sizes;  // by sample: most bytes that one read of it got
    std::vector<Read> reads;           // by time
    std::uint32_t readers = 0;
    bool has_epochs = false;           // every read has one
    bool is_access_log = false;        // of an S3 server
    std::uint64_t other_requests = 0;  // of an access log: no successful GETs of objects
    std::uint64_t partial_reads = 0;   // of parts of objects
    RefusedLines refused;
};

}  // namespace stoker::advise
