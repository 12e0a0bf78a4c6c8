#include "sidecar/control/control_messages.h"

#include <cstddef>

#include "common/base/utf8.h"

namespace stoker::sidecar {

namespace {

// Sketches with masses (RankSketch) per report: 4 KiB each, well below the operator's message
// limit.
constexpr int kMassesPerReport = 16;

// Removes the masses of sketches that this stream has sent with the same sketch revision. Defers
// those beyond kMassesPerReport to the next report; until then reports the older revision.
void leave_out_told(control::DatasetReport& dataset, ToldSketches& told, int& masses_left) {
    std::erase_if(dataset.sketches, [&](control::RankSketch& sketch) {
        std::uint64_t& known = told[{dataset.dataset_uid, sketch.job_uid}];
        if (known != sketch.revision && masses_left > 0) {
            --masses_left;
            known = sketch.revision;
        } else {
            sketch.revision = known;
            sketch.masses.clear();
        }
        return known == 0;
    });
}

// Limit for reported keys, which may contain any bytes.
constexpr std::size_t kKeyBytesMax = 1024;

std::string key_text(const std::string& key) {
    return std::string{utf8_prefix(printable_utf8(key), kKeyBytesMax)};
}

}  // namespace

control::Hello make_hello(const JobConfig& job, const std::vector<DatasetConfig>& datasets) {
    control::Hello hello{
        job.pod_namespace,
        job.pod,
        job.node,
        job.training_job,
        job.training_job_uid,
        static_cast<std::int32_t>(job.rank),
        STOKER_VERSION,
        {}};
    for (const DatasetConfig& dataset : datasets) {
        hello.mounts.push_back({dataset.name, dataset.uid});
    }
    return hello;
}

void fit_for_stream(control::Report& report, ToldSketches& told) {
    int masses_left = kMassesPerReport;
    for (control::DatasetReport& dataset : report.datasets) {
        leave_out_told(dataset, told, masses_left);
        dataset.error = printable_utf8(dataset.error);  // the message may quote the origin and keys
        dataset.changed_key = key_text(dataset.changed_key);
        if (dataset.origin_change) {
            dataset.origin_change->key = key_text(dataset.origin_change->key);
        }
    }
}

}  // namespace stoker::sidecar
