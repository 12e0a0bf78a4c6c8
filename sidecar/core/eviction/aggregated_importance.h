#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "sidecar/core/eviction/importance_values.h"

namespace stoker::sidecar {

// Aggregated importance over the jobs that read one dataset (iCACHE, HPCA 2023, multi-job):
// AIV_i = sum of weight_j * RIV_ij over the sum of weights, per byte where sizes are given.
//
// Nothing is stored per sample: sums are taken when asked for, from the jobs' own ranks. So a job
// that leaves takes its contribution with it to the last bit, and the scale of no job's losses
// matters. O(jobs) a question. Not thread-safe.
class AggregatedImportance final : public ImportanceValues {
public:
    using JobId = std::uint64_t;

    struct Job {
        double weight = 0;             // 0 or more
        double unimportant_below = 0;  // relative importance under which the job takes substitutes
        // The job's RIV by sample, asked for at every question; empty: the job has none.
        std::function<std::span<const float>()> ranks;
    };

    using SizeOf = std::function<Bytes(SampleIndex)>;

    // With `size_of`, values are per byte: a sample twice as large has to be worth twice as much.
    explicit AggregatedImportance(SizeOf size_of = {})
        : size_of_(std::move(size_of)) {}

    // A new job, or a new weight of a known one.
    void set_job(JobId id, Job job);
    void remove_job(JobId id);

    // Ignores jobs that are not known. True: the weight has changed.
    bool set_weight(JobId id, double weight);

    [[nodiscard]] bool empty() const { return jobs_.empty(); }

    // 0 where no job has weight. A sample beyond a job's ranks counts as fully important to it.
    [[nodiscard]] float value(SampleIndex sample) const override;

    void expect(std::span<const SampleIndex> samples) const override;

    // To every job that has weight; never without such jobs.
    [[nodiscard]] bool unimportant(SampleIndex sample) const override;

private:
    std::map<JobId, Job> jobs_;
    SizeOf size_of_;
};

}  // namespace stoker::sidecar
