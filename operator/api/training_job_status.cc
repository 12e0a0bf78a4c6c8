#include "operator/api/json_writer.h"
#include "operator/api/training_job.h"

namespace stoker::control {

namespace {

JsonWriter write_columns(const TrainingJobColumns& columns) {
    JsonWriter writer;
    writer.text("cache", columns.cache)
        .text("hit", columns.hit)
        .text("benefit", columns.benefit)
        .text("borrowed", columns.borrowed)
        .text("origin", columns.origin);
    return writer;
}

JsonWriter write_cache(const CacheStatus& cache) {
    JsonWriter writer;
    writer.text("pool", cache.pool)
        .number("wantedBytes", cache.wanted_bytes)
        .number("allocatedBytes", cache.allocated_bytes)
        .number("borrowedBytes", cache.borrowed_bytes)
        .number("usedBytes", cache.used_bytes)
        .number("cacheBytes", cache.cache_bytes)
        .number("originBytes", cache.origin_bytes)
        .number("originBytesPerSecond", cache.origin_bytes_per_second)
        .text("hitRatio", cache.hit_ratio)
        .time("sampledAt", cache.sampled_at);
    if (cache.benefit) {
        JsonWriter benefit;
        benefit.text("secondsSavedPerEpoch", cache.benefit->seconds_saved_per_epoch)
            .text("perGiB", cache.benefit->per_gib)
            .text("marginalPerGiB", cache.benefit->marginal_per_gib)
            .text("method", cache.benefit->method)
            .text("gpuSecondsPerGiBHour", cache.benefit->gpu_seconds_per_gib_hour)
            .text("speedup", cache.benefit->speedup);
        writer.object("benefit", benefit);
    }
    return writer;
}

JsonWriter write_profile(const ProfileStatus& profile) {
    JsonWriter writer;
    writer.number("samplesPerSecondNeeded", profile.samples_per_second_needed)
        .number("samplesPerSecondRemote", profile.samples_per_second_remote)
        .number("computeSecondsPerEpoch", profile.compute_seconds_per_epoch)
        .number("datasetBytes", profile.dataset_bytes)
        .text("verdict", profile.verdict)
        .text("waitShare", profile.wait_share)
        .text("confidence", profile.confidence);
    return writer;
}

JsonWriter write_progress(const ProgressStatus& progress) {
    JsonWriter writer;
    writer.number("epoch", progress.epoch)
        .number("percentage", progress.percentage)
        .number("samplesRead", progress.samples_read);
    if (progress.estimated_remaining_seconds) {
        writer.number("estimatedRemainingSeconds", *progress.estimated_remaining_seconds);
    }
    return writer;
}

JsonWriter write_child(const ChildJobStatus& child) {
    JsonWriter writer;
    writer.text("name", child.name)
        .number("active", child.active)
        .number("ready", child.ready)
        .number("succeeded", child.succeeded)
        .number("failed", child.failed);
    return writer;
}

JsonWriter write_dataset(const JobDatasetStatus& dataset) {
    JsonWriter writer;
    writer.text("name", dataset.name)
        .text("uid", dataset.uid)
        .number("totalBytes", dataset.total_bytes)
        .number("samples", dataset.samples)
        .number("allocatedBytes", dataset.allocated_bytes)
        .number("usedBytes", dataset.used_bytes)
        .text("revision", dataset.revision)
        .text("changedKey", dataset.changed_key);
    if (dataset.revision_attempt > 0) {
        writer.number("revisionAttempt", dataset.revision_attempt);
    }
    return writer;
}

}  // namespace

std::string status_patch(const TrainingJob& job) {
    const TrainingJobStatus& status = job.status;
    JsonWriter writer;
    writer.number("observedGeneration", status.observed_generation)
        .list("conditions", status.conditions, write_condition)
        .object("columns", write_columns(status.columns))
        .time("startTime", status.start_time)
        .time("completionTime", status.completion_time)
        .number("activeSeconds", status.active_seconds)
        .time("activeSince", status.active_since)
        .number("attempt", status.attempt)
        .number("restarts", status.restarts)
        .time("lastRestartTime", status.last_restart_time)
        .list("jobs", status.jobs, write_child)
        .list("datasets", status.datasets, write_dataset);
    if (status.attempt_pool) {
        JsonWriter pool;
        pool.number("attempt", status.attempt_pool->attempt)
            .text("name", status.attempt_pool->name);
        writer.object("attemptPool", pool);
    }
    if (status.cache) {
        writer.object("cache", write_cache(*status.cache));
    }
    if (status.profile) {
        writer.object("profile", write_profile(*status.profile));
    }
    if (status.progress) {
        writer.object("progress", write_progress(*status.progress));
    }
    return status_body("TrainingJob", job.meta, writer);
}

}  // namespace stoker::control
