#include "operator/api/job.h"

#include "operator/api/json_reader.h"

namespace stoker::control {

namespace {

JobEnd read_end(const JsonReader& condition, bool succeeded) {
    return {
        succeeded,
        condition.text("reason"),
        condition.text("message"),
        condition.maybe_time("lastTransitionTime")};
}

Job read_job(const JsonReader& root) {
    Job result;
    result.meta = read_meta(root);
    const JsonReader spec = root.object("spec");
    result.suspend = spec.flag("suspend");
    result.active_deadline_seconds = spec.maybe_integer("activeDeadlineSeconds");
    const JsonReader status = root.object("status");
    result.active = status.integer("active");
    result.ready = status.integer("ready");
    result.succeeded = status.integer("succeeded");
    result.failed = status.integer("failed");
    result.start_time = status.maybe_time("startTime");
    status.each("conditions", [&](const JsonReader& condition) {
        const std::string type = condition.text("type");
        if (condition.text("status") != "True") {
            return;
        }
        if (type == "Complete") {
            result.end = read_end(condition, true);
        } else if (type == "Failed" || (type == "FailureTarget" && !result.end)) {
            result.end = read_end(condition, false);
        }
    });
    return result;
}

}  // namespace

Result<Job> parse_job(std::string_view json) {
    return read_document(json, read_job);
}

}  // namespace stoker::control
