#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "sidecar/core/stream_set.h"

namespace stoker::sidecar {

// How far one rank, or all of them together, have come in an epoch.
struct EpochProgress {
    std::uint64_t epoch = 0;
    std::uint64_t samples = 0;   // of the epoch; 0: not known
    std::uint64_t position = 0;  // read of them

    bool operator==(const EpochProgress&) const = default;
};

// How far the trainers of one pod have read one dataset. What a stream has read stays the word of
// its rank when the stream's last connection ends, until another stream of the rank begins an
// epoch: a job that has just ended has read what it has read. Bounded whatever clients say. Not
// thread-safe.
class JobProgress {
public:
    static constexpr std::size_t kStreamsMax = 4096;

    void connect(StreamId stream) { ++connections_[stream]; }

    void disconnect(StreamId stream);

    // The stream, which has a connection, goes into an epoch, or says its order anew.
    void begin(StreamId stream, std::uint32_t rank, EpochProgress progress);

    // Samples of another epoch than the stream's count for nothing.
    void read(StreamId stream, std::uint64_t epoch, std::uint64_t samples);

    // Under a contract that chooses: so many were drawn, and with `ended` nothing more comes; the
    // epoch is as long as what was drawn, then.
    void drawn(StreamId stream, std::uint64_t epoch, std::uint64_t samples, bool ended);

    // The newest epoch that a rank reads; all zero before the first begin(). Ranks that are still
    // in an epoch before it add what they have to read, and have read nothing of it.
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
