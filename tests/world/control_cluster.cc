#include "tests/world/control_cluster.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/base/check.h"
#include "operator/api/time_format.h"
#include "operator/core/workload/build_filler.h"
#include "operator/core/workload/build_job.h"

namespace stoker::world {

namespace kinds = control::kinds;
using control::find_at;
using control::string_at;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr const char* kFinalizer = "stoker.test/ends-first";

std::string text_at(const web::json::value& object, control::JsonPath path) {
    const auto* found = find_at(object, path);
    return found == nullptr ? "null" : found->serialize();
}

bool is_going(const web::json::value& object) {
    return find_at(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

// The value of a container's variable.
std::string env_of(const web::json::value& pod, const std::string& name) {
    for (const char* list : {"initContainers", "containers"}) {
        const auto* containers = find_at(pod, {"spec", list});
        for (std::size_t i = 0; containers != nullptr && i < containers->size(); ++i) {
            const auto* variables = find_at(containers->at(i), {"env"});
            for (std::size_t j = 0; variables != nullptr && j < variables->size(); ++j) {
                if (string_at(variables->at(j), {"name"}) == name) {
                    return string_at(variables->at(j), {"value"});
                }
            }
        }
    }
    return "";
}

}  // namespace

ControlCluster::ControlCluster(Schedule& schedule, ControlApi& api, Settings settings)
    : schedule_(schedule),
      api_(api),
      settings_(std::move(settings)),
      job_cursor_(api.follow(kinds::kJobs)),
      pod_cursor_(api.follow(kinds::kPods)) {
    schedule_.run_in(Duration{}, [this] { tick(); });
}

std::string ControlCluster::now_text() const {
    return control::format_time(schedule_.clock().wall_now());
}

void ControlCluster::catch_up() {
    for (const std::string& line : api_.poll(job_cursor_).lines) {
        take_line(kinds::kJobs, line);
    }
    for (const std::string& line : api_.poll(pod_cursor_).lines) {
        take_line(kinds::kPods, line);
    }
}

void ControlCluster::skip_history() {
    job_cursor_ = api_.follow(kinds::kJobs, false);
    pod_cursor_ = api_.follow(kinds::kPods, false);
}

void ControlCluster::tick() {
    catch_up();
    std::vector<ObjectKey> keys;
    for (const auto& [key, job] : jobs_) {
        keys.push_back(key);
    }
    for (const ObjectKey& key : keys) {
        if (const auto found = jobs_.find(key); found != jobs_.end()) {
            sync(found->second);
        }
    }
    schedule_.run_in(schedule_.draw_scale(milliseconds{20}, seconds{1}), [this] { tick(); });
}

void ControlCluster::take_line(const ResourceKind& kind, const std::string& line) {
    const auto event = Json::parse(line);
    STOKER_CHECK(event.has_value(), "the model writes JSON");
    const std::string type = string_at(event->value(), {"type"});
    const auto& object = event->value().at("object");
    if (kind == kinds::kJobs) {
        take_job(type, object);
    } else {
        take_pod(type, object);
    }
}

void ControlCluster::take_job(const std::string& type, const web::json::value& object) {
    const ObjectKey key{
        string_at(object, {"metadata", "namespace"}), string_at(object, {"metadata", "name"})};
    if (type == "DELETED") {
        jobs_.erase(key);
        return;
    }
    Job& job = jobs_[key];
    const std::string uid = string_at(object, {"metadata", "uid"});
    if (job.uid != uid) {
        job = {};
        job.key = key;
        job.uid = uid;
        job.owner = string_at(object, {"metadata", "labels", std::string{control::kJobLabel}});
        job.node = string_at(
            object, {"metadata", "annotations", std::string{control::kFillerNodeAnnotation}});
        job.ranks = control::integer_at(object, {"spec", "completions"}).value_or(1);
        job.is_indexed = string_at(object, {"spec", "completionMode"}) == "Indexed";
        const auto* pod = find_at(object, {"spec", "template"});
        if (pod != nullptr) {
            job.template_labels = text_at(*pod, {"metadata", "labels"});
            job.template_annotations = text_at(*pod, {"metadata", "annotations"});
            job.template_volumes = text_at(*pod, {"spec", "volumes"});
            job.sidecar_config = env_of(*pod, "STOKER_SIDECAR_CONFIG");
        }
    }
    job.is_deleted = is_going(object);
}

void ControlCluster::take_pod(const std::string& type, const web::json::value& object) {
    const ObjectKey key{
        string_at(object, {"metadata", "namespace"}), string_at(object, {"metadata", "name"})};
    const auto pod = pods_.find(key);
    if (pod == pods_.end()) {
        return;
    }
    if (type == "DELETED") {
        pods_.erase(pod);
    } else if (is_going(object) && !pod->second.is_deleted) {
        pod->second.is_deleted = true;
        after(schedule_.draw_scale(milliseconds{10}, seconds{10}), key, &ControlCluster::terminate);
    }
}

std::vector<ControlCluster::Pod*> ControlCluster::pods_of(const Job& job) {
    std::vector<Pod*> found;
    for (auto& [key, pod] : pods_) {
        if (pod.job == job.key) {
            found.push_back(&pod);
        }
    }
    return found;
}

void ControlCluster::sync(Job& job) {
    const std::vector<Pod*> pods = pods_of(job);
    if (job.is_deleted) {
        std::ranges::for_each(pods, [this](Pod* pod) { delete_pod(*pod); });
        if (pods.empty()) {
            release(kinds::kJobs, job.key);
        }
        return;
    }
    if (job.has_ended || job.sidecar_config.empty()) {
        return;  // a Job of somebody else: the test makes no pods for it
    }
    for (const Pod* pod : pods) {
        job.is_failing = job.is_failing || pod->phase == Phase::kFailed || pod->is_deleted;
        if (pod->phase == Phase::kSucceeded) {
            job.succeeded.insert(pod->rank);
        }
    }
    if (std::ssize(job.succeeded) == job.ranks) {
        end_job(job, true, "CompletionsReached");
    } else if (job.is_failing) {
        const bool disrupted =
            std::ranges::any_of(pods, [](Pod* pod) { return pod->is_disrupted; });
        bool all_ended = true;
        for (Pod* pod : pods) {
            all_ended = all_ended && pod->has_ended();
            if (!pod->has_ended()) {
                delete_pod(*pod);
            }
        }
        if (all_ended) {
            end_job(job, false, disrupted ? "PodFailurePolicy" : "BackoffLimitExceeded");
        }
    } else {
        make_pods(job);
        write_job_status(job);
    }
}

void ControlCluster::make_pods(Job& job) {
    std::set<std::int64_t> missing;
    for (std::int64_t rank = 0; rank < job.ranks; ++rank) {
        missing.insert(rank);
    }
    for (const Pod* pod : pods_of(job)) {
        missing.erase(pod->rank);
    }
    // A pod has gone: with backoffLimit 0 the Job has failed.
    if (job.pods_made >= job.ranks && !missing.empty()) {
        job.is_failing = true;
        return;
    }
    for (const std::int64_t rank : missing) {
        make_pod(job, rank);
    }
}

void ControlCluster::make_pod(Job& job, std::int64_t rank) {
    const std::string name =
        fmt::format("{}-{}-{:05x}", job.key.name, rank, schedule_.luck().below(1 << 20));
    const std::string index =
        job.is_indexed ? fmt::format(R"(,"batch.kubernetes.io/job-completion-index":"{}")", rank)
                       : "";
    std::string labels = job.template_labels == "null" ? "{}" : job.template_labels;
    labels.pop_back();
    labels += fmt::format(
        R"({}"batch.kubernetes.io/job-name":"{}","batch.kubernetes.io/controller-uid":"{}"{}}})",
        labels.size() > 1 ? "," : "",
        job.key.name,
        job.uid,
        index);
    const auto made = api_.create(
        kinds::kPods,
        job.key.ns,
        fmt::format(
            R"({{"metadata":{{"name":"{}","labels":{},"annotations":{},"finalizers":["{}"],)"
            R"("ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{}","uid":"{}","controller":true}}]}},)"
            R"("spec":{{"volumes":{}}},"status":{{"phase":"Pending"}}}})",
            name,
            labels,
            job.template_annotations,
            kFinalizer,
            job.key.name,
            job.uid,
            job.template_volumes));
    STOKER_CHECK(made.status == 201, made.body.c_str());
    ++job.pods_made;
    Pod& pod = pods_[{job.key.ns, name}];
    pod.key = {job.key.ns, name};
    pod.job = job.key;
    pod.owner = job.owner;
    pod.rank = rank;
    pod.node = job.node;
    after(
        schedule_.draw_scale(milliseconds{10}, seconds{5}), pod.key, &ControlCluster::schedule_pod);
}

void ControlCluster::release(const ResourceKind& kind, const ObjectKey& key) {
    api_.merge(kind, key, R"({"metadata":{"finalizers":null}})");
}

void ControlCluster::write_job_status(Job& job) {
    std::int64_t active = 0;
    std::int64_t ready = 0;
    for (const Pod* pod : pods_of(job)) {
        active += pod->has_ended() ? 0 : 1;
        ready += pod->is_ready ? 1 : 0;
    }
    const std::string status = fmt::format(
        R"("active":{},"ready":{},"succeeded":{})", active, ready, job.succeeded.size());
    if (status == job.status) {
        return;
    }
    const std::string start =
        job.status.empty() ? fmt::format(R"(,"startTime":"{}")", now_text()) : "";
    job.status = status;
    api_.merge(
        kinds::kJobs, job.key, fmt::format(R"({{"status":{{{}{}}}}})", status, start), "status");
}

void ControlCluster::end_job(Job& job, bool succeeded, const std::string& reason) {
    job.has_ended = true;
    api_.merge(
        kinds::kJobs,
        job.key,
        fmt::format(
            R"({{"status":{{"active":0,"ready":0,"conditions":[{{"type":"{}","status":"True",)"
            R"("reason":"{}","message":"over","lastTransitionTime":"{}"}}]}}}})",
            succeeded ? "Complete" : "Failed",
            reason,
            now_text()),
        "status");
}

}  // namespace stoker::world
