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

// Chooses samples that a published system (simulate/baselines/) fetches before any read.
class Refiller {
public:
    virtual ~Refiller() = default;

    // Appends samples to fetch now; each at most once.
    virtual void take_refills(std::vector<SampleIndex>& samples) = 0;
};

// The sidecar's DatasetEngine in virtual time, with an OriginLink as origin and a disk that takes
// no time and never fails. Trainers call the engine as clients do, and pass its effects to apply().
// Times must not go back. Not thread-safe.
class VirtualNode {
public:
    struct Setting {
        std::span<const std::uint64_t> sizes;  // payload
        Bytes resident_bytes{};                // of records
        Bytes window_bytes{};
        OriginSpec origin;
        std::unique_ptr<sidecar::EvictionPolicy> eviction;  // nullptr: the contracts choose one
        Refiller* refiller = nullptr;                       // may be null
    };

    explicit VirtualNode(Setting setting);

    [[nodiscard]] sidecar::DatasetEngine& engine() { return engine_; }

    // Counts the job's fetches in `figures` from now on; it must stay valid until leave().
    void join(std::size_t job, EpochFigures& figures);

    // Stops counting for the job; its fetches still in flight count for another job.
    void leave(std::size_t job);

    // Executes the effects of an event of the job.
    void apply(const sidecar::Effects& effects, std::size_t job, TimePoint now);

    // The job reads the sample directly from the origin; returns the time of arrival.
    TimePoint read_at_origin(SampleIndex sample, std::size_t job, TimePoint now);

    // Call after reads of the job: fetches the samples that the refiller wants.
    void refill(std::size_t job, TimePoint now);

    // When advance() must be called next.
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
    std::deque<Arrival> arrivals_;        // in order of arrival
    std::vector<sidecar::FetchReply> replies_;
    std::optional<TimePoint> tick_at_;
};

}  // namespace stoker::simulate
