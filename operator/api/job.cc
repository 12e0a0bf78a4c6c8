#include "operator/api/job.h"

#include "operator/api/field_codec.h"

namespace stoker::control {

namespace {

JobEnd read_end(const JsonReader& condition, bool succeeded) {
    return {
        succeeded,
        condition.text("reason"),
        condition.text("message"),
        condition.maybe_time("lastTransitionTime")};
}

void read_job_end(const JsonReader& root, Job& job) {
    root.object("status").each("conditions", [&](const JsonReader& condition) {
        const std::string type = condition.text("type");
        if (condition.text("status") != "True") {
            return;
        }
        if (type == "Complete") {
            job.end = read_end(condition, true);
        } else if (type == "Failed" || (type == "FailureTarget" && !job.end)) {
            job.end = read_end(condition, false);
        }
    });
}

}  // namespace

template <>
inline constexpr auto kFields<Job> = std::tuple{
    field("metadata", &Job::meta),
    field("spec.suspend", &Job::suspend),
    field("spec.activeDeadlineSeconds", &Job::active_deadline_seconds),
    field("spec.completions", &Job::completions),
    field("status.active", &Job::active),
    field("status.ready", &Job::ready),
    field("status.succeeded", &Job::succeeded),
    field("status.failed", &Job::failed),
    field("status.startTime", &Job::start_time)};
template <>
inline constexpr auto kAlsoRead<Job> = &read_job_end;

template Result<Job> read_document<Job>(const Json& json);

}  // namespace stoker::control
