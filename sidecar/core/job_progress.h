#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

// Progress of one rank, or of all ranks together, in an epoch.
struct EpochProgress {
    std::uint64_t epoch = 0;
    std::uint64_t samples = 0;   // samples in the epoch; 0: unknown
    std::uint64_t position = 0;  // samples read so far

    bool operator==(const EpochProgress&) const = default;
};

// How far the trainers of one pod have read one dataset. After a stream's last connection ends, its
// progress stays that of its rank until another stream of the rank begins an epoch, so a job that
// has just ended still shows its progress. Memory is bounded whatever clients send. Not
// thread-safe.
class JobProgress {
public:
    static constexpr std::size_t kStreamsMax = 4096;

    void connect(StreamId stream) { ++connections_[stream]; }

    void disconnect(StreamId stream);

    // The stream begins an epoch, or sends its plan again. It must have a connection.
    void begin(StreamId stream, std::uint32_t rank, EpochProgress progress);

    // The stream has read `samples` more. Ignored if `epoch` is not the stream's current epoch.
    void read(StreamId stream, std::uint64_t epoch, std::uint64_t samples);

    // For a contract that selects samples: number of samples drawn. `ended`: this number is final
    // and is the epoch's length.
    void drawn(StreamId stream, std::uint64_t epoch, std::uint64_t samples, bool ended);

    // The newest epoch that any rank reads; all zero before the first begin(). A rank still in an
    // earlier epoch counts as having read nothing of this one.
    [[nodiscard]] EpochProgress sum() const;

private:
    struct Entry {
        std::uint32_t rank = 0;
        EpochProgress progress;
        std::uint64_t drawn = 0;
    };

    Entry* find(StreamId stream, std::uint64_t epoch);
    void forget_ended(std::uint32_t rank);

    std::map<StreamId, std::uint32_t> connections_;
    std::map<StreamId, Entry> entries_;
};

}  // namespace stoker::sidecar
