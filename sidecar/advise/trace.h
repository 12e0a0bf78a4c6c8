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
    double seconds = 0;  // time of the read; the zero is arbitrary, but the same for all reads
    SampleIndex sample = 0;
    std::uint32_t epoch = kNoEpoch;  // as the program counts; kNoEpoch: not recorded
    std::uint32_t reader = 0;        // number of the rank, or of the host in an access log
};

// The lines of a trace that were not reads.
struct RefusedLines {
    std::uint64_t count = 0;
    std::uint64_t first_line = 0;  // number of the first such line, from 1
    std::string first_reason;
};

// The reads of a program. A sample is a key, or key and offset if parts of objects are read.
struct Trace {
    std::vector<std::uint64_t> sizes;  // by sample: the most bytes that one read of it returned
    std::vector<Read> reads;           // in order of time
    std::uint32_t readers = 0;
    bool has_epochs = false;           // every read has an epoch
    bool is_access_log = false;        // it comes from an S3 server's access log
    std::uint64_t other_requests = 0;  // in an access log: not a successful GET of an object
    std::uint64_t partial_reads = 0;   // reads of parts of objects
    RefusedLines refused;
};

}  // namespace stoker::advise
