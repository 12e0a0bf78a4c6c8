#include "sidecar/simulate/scenario.h"

#include <algorithm>
#include <numeric>

namespace stoker::simulate {

namespace {

double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace

JobMeans means_of(const Outcome& outcome, std::size_t job, std::uint32_t discard) {
    JobMeans means;
    const auto samples = static_cast<double>(outcome.samples);
    const auto bytes = static_cast<double>(outcome.dataset_bytes.count());
    double hits = 0;
    double requested = 0;
    double substituted = 0;
    for (const EpochFigures& epoch : outcome.jobs[job].epochs) {
        if (epoch.epoch < discard || !epoch.complete) {
            continue;
        }
        ++means.epochs;
        requested += static_cast<double>(epoch.requested);
        hits += static_cast<double>(epoch.hits);
        substituted += static_cast<double>(epoch.substituted);
        means.coverage += static_cast<double>(epoch.distinct) / samples;
        means.origin_requests += static_cast<double>(epoch.origin_requests);
        means.origin_samples += static_cast<double>(epoch.origin_samples) / samples;
        means.origin_bytes += static_cast<double>(epoch.origin_bytes.count()) / bytes;
        means.seconds += seconds(epoch.time);
        means.waited_seconds += seconds(epoch.waited);
    }
    const double count = std::max<std::uint32_t>(means.epochs, 1);
    for (double* sum :
         {&means.coverage,
          &means.origin_requests,
          &means.origin_samples,
          &means.origin_bytes,
          &means.seconds,
          &means.waited_seconds}) {
        *sum /= count;
    }
    means.requested = requested / samples / count;
    means.hit_ratio = requested > 0 ? hits / requested : 0;
    means.substituted = requested > 0 ? substituted / requested : 0;
    return means;
}

double SteadyPart::speed_reached(const Scenario& scenario) const {
    double least = 1;
    for (std::size_t job = 0; job < computed_samples.size(); ++job) {
        const double wanted =
            scenario.samples_per_second * scenario.jobs[job].speed * seconds(time);
        least = std::min(least, static_cast<double>(computed_samples[job]) / wanted);
    }
    return least;
}

double fetches_per_job_epoch(const Outcome& outcome, std::uint32_t discard) {
    if (outcome.steady) {
        const auto& read = outcome.steady->computed_samples;
        return static_cast<double>(outcome.steady->fetched_samples) /
               static_cast<double>(std::accumulate(read.begin(), read.end(), std::uint64_t{0}));
    }
    double fetched = 0;
    double requested = 0;
    for (const JobFigures& job : outcome.jobs) {
        for (const EpochFigures& epoch : job.epochs) {
            if (epoch.epoch >= discard) {
                fetched += static_cast<double>(epoch.origin_samples);
                requested += static_cast<double>(epoch.requested);
            }
        }
    }
    return requested > 0 ? fetched / requested : 0;
}

}  // namespace stoker::simulate
