#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "common/base/bytes.h"
#include "sidecar/core/eviction/importance_values.h"
#include "sidecar/core/eviction/read_curve.h"

namespace stoker::sidecar {

// Aggregated importance of sample i over the jobs j that read one dataset (iCACHE, HPCA 2023):
// sum of weight_j * reads_j(r_ij) over the sum of weights, per byte where sizes are given. r_ij is
// the relative importance of the sample for the job. With reads per second as weights, the result
// is the rate at which all jobs together read the sample.
//
// Stores nothing per sample: each query sums the jobs' current ranks. So removing a job removes its
// contribution exactly, and the scale of a job's losses does not matter. O(jobs) per query. Not
// thread-safe.
class AggregatedImportance final : public ImportanceValues {
public:
    using JobId = std::uint64_t;

    struct Job {
        double weight = 0;             // 0 or more: value of all the job's reads together
        double unimportant_below = 0;  // relative importance below which the job takes substitutes
        ReadCurve reads{};
        // The job's relative importance of each sample, called at every query; empty: it has none.
        std::function<std::span<const float>()> ranks;
    };

    using SizeOf = std::function<Bytes(SampleIndex)>;

    // With `size_of`, values are per byte: a sample of twice the size needs twice the value.
    explicit AggregatedImportance(SizeOf size_of = {})
        : size_of_(std::move(size_of)) {}

    // Adds a job, or changes the weight of a known one.
    void set_job(JobId id, Job job);
    void remove_job(JobId id);

    // Changes a job's weight. Ignores unknown jobs. True: the weight has changed.
    bool set_weight(JobId id, double weight);

    [[nodiscard]] bool empty() const { return jobs_.empty(); }

    // 0 if no job has a weight above 0. A job counts a sample beyond its ranks as fully important.
    [[nodiscard]] float value(SampleIndex sample) const override;

    void expect(std::span<const SampleIndex> samples) const override;

    // Whether all jobs with a weight find the sample unimportant. False if no job has a weight.
    [[nodiscard]] bool unimportant(SampleIndex sample) const override;

private:
    std::map<JobId, Job> jobs_;
    SizeOf size_of_;
};

}  // namespace stoker::sidecar
