#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"
#include "sidecar/core/sampling/windowed_scan.h"
#include "sidecar/simulate/node.h"
#include "sidecar/simulate/origin_link.h"

namespace stoker::simulate {

// Work of a policy that no read asks for: what it gives up and what it brings in by itself.
class BackgroundWork {
public:
    virtual ~BackgroundWork() = default;

    struct Work {
        std::vector<SampleIndex> drops;    // residents
        std::vector<SampleIndex> fetches;  // once those are gone; each at most once
    };

    // Appends what there is to do. Called after every batch.
    virtual void take_work(Work& work) = 0;
};

// The rules of the sidecar's FetchEngine without its patience for failures: an absent sample is
// fetched when it is asked for, stays if the grant has room or the policy makes some, else passes
// through the window, which drops it as soon as nobody needs or holds it. What a job foresees is
// fetched in its order until the window is full, and so far nothing of it goes to make room: an
// eviction never undoes a prefetch. A sample counts as stored from the moment its fetch begins.
// O(log n) a sample; 16 bytes a sample. A model: `make traffic` holds it to what the sidecar
// really reads.
class NodeModel final : public Node {
public:
    struct Setting {
        std::span<const std::uint64_t> sizes;  // payload
        Bytes resident_bytes{};                // of records
        Bytes window_bytes{};
        OriginSpec origin;
        sidecar::EvictionPolicy* policy = nullptr;
        BackgroundWork* background = nullptr;  // may be null, as the next one
        sidecar::SharedScan* scan = nullptr;   // knows who needs what of the window
        std::vector<sidecar::Sampler*> samplers;
    };

    explicit NodeModel(Setting setting);

    void begin_epoch(const EpochStart& start, TimePoint now) override;
    void foresee(
        std::size_t job,
        std::span<const SampleIndex> samples,
        EpochFigures& figures,
        TimePoint now) override;
    void expect(std::size_t job, std::span<const SampleIndex> samples) override;
    void request(std::size_t job, Batch& batch, EpochFigures& figures, TimePoint now) override;
    void consume(
        std::size_t job, const Batch& batch, EpochFigures& figures, TimePoint now) override;

    [[nodiscard]] std::optional<TimePoint> next_event() const override { return std::nullopt; }

    void advance(TimePoint /*now*/) override {}

    std::vector<Answer> take_answers() override;

private:
    enum class Place : std::uint8_t { kAbsent, kResident, kWindow };

    struct Record {
        TimePoint ready{};        // when its bytes are here
        std::uint16_t needs = 0;  // reads that are known to come in the jobs' current epochs
        std::uint16_t holds = 0;  // drawn and not consumed
        std::uint16_t near = 0;   // places in what jobs foresee
        Place place = Place::kAbsent;
        bool fresh = false;  // fetched ahead, and nobody has read it yet
    };

    static_assert(sizeof(Record) == 16);

    class MayGo;

    TimePoint fetch(SampleIndex sample, TimePoint now);
    bool keep(SampleIndex sample);
    bool make_resident_room(SampleIndex sample, Bytes bytes);
    bool make_window_room(Bytes bytes);
    void store(SampleIndex sample, Place place, Bytes bytes);
    void drop(SampleIndex sample);
    void drop_if_superfluous(SampleIndex sample);
    bool fetch_ahead(SampleIndex sample, EpochFigures& figures, TimePoint now);
    void forget(std::span<const SampleIndex> samples);
    void drop_forgotten();
    [[nodiscard]] bool may_go(SampleIndex sample) const;
    [[nodiscard]] bool is_needed(SampleIndex sample) const;
    void pay(SampleIndex sample, EpochFigures& figures) const;
    void work_in_background(EpochFigures& figures, TimePoint now);
    [[nodiscard]] Bytes record_bytes(SampleIndex sample) const;

    Setting setting_;
    OriginLink link_;
    std::vector<Record> records_;
    std::vector<bool> counts_needs_;                  // by job
    std::vector<std::vector<SampleIndex>> foreseen_;  // by job, as far as was fetched ahead
    std::vector<SampleIndex> forgotten_;              // by a job that had foreseen them
    std::deque<SampleIndex> window_;                  // in order of arrival; may hold stale ids
    std::vector<SampleIndex> victims_;
    BackgroundWork::Work work_;
    std::vector<Answer> answers_;
    Bytes resident_{};
    Bytes window_bytes_{};
};

}  // namespace stoker::simulate
