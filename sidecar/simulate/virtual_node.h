#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sidecar/core/sampling/sampler.h"
#include "sidecar/engine/dataset_engine.h"
#include "sidecar/simulate/origin_link.h"

namespace stoker::simulate {

using domain::SampleIndex;

// Fetches that a baseline wants and no read asks for.
class Refiller {
public:
    virtual ~Refiller() = default;

    // Appends samples to fetch now; each at most once.
    virtual void take_refills(std::vector<SampleIndex>& samples) = 0;
};

// The sidecar's DatasetEngine in virtual time, before an origin that answers as OriginLink says and
// a disk that takes no time and never fails. Trainers call the engine as clients do, and hand its
// effects to apply(). No given time is before an earlier one. Not thread-safe.
class VirtualNode {
public:
    struct Setting {
        std::span<const std::uint64_t> sizes;  // payload
        Bytes resident_bytes{};                // of records
        Bytes window_bytes{};
        OriginSpec origin;
        std::unique_ptr<sidecar::EvictionPolicy> eviction;  // nullptr: as the jobs' contracts say
        Refiller* refiller = nullptr;                       // may be null
    };

    explicit VirtualNode(Setting setting);

    [[nodiscard]] sidecar::DatasetEngine& engine() { return engine_; }

    // From now on the job's fetches are counted in `figures`, which must outlive it or leave().
    void join(std::size_t job, EpochFigures& figures);

    // What is still fetched for the job counts as another one's.
    void leave(std::size_t job);

    // Carries out what the engine said in an event of the job.
    void apply(const sidecar::Effects& effects, std::size_t job, TimePoint now);

    // The job reads the sample at the origin itself. When it is there.
    TimePoint read_at_origin(SampleIndex sample, std::size_t job, TimePoint now);

    // After reads of the job: fetches what the refiller wants.
    void refill(std::size_t job, TimePoint now);

    // When advance() has to be called next.
    [[nodiscard]] std::optional<TimePoint> next_event() const;
    void advance(TimePoint now);

    std::vector<sidecar::FetchReply> take_replies() { return std::exchange(replies_, {}); }

private:
    struct Arrival {
        TimePoint at{};
        SampleIndex sample = 0;
        std::uint32_t job = 0;
    };

    EpochFigures& pay(SampleIndex sample, std::size_t job);

    std::span<const std::uint64_t> sizes_;
    sidecar::DatasetEngine engine_;
    OriginLink link_;
    Refiller* refiller_;
    std::vector<EpochFigures*> figures_;  // by job; nullptr: it has left
    std::deque<Arrival> arrivals_;        // in their order
    std::vector<sidecar::FetchReply> replies_;
    std::optional<TimePoint> tick_at_;
};

}  // namespace stoker::simulate
