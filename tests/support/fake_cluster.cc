#include "tests/support/fake_cluster.h"

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/base/check.h"
#include "operator/api/time_format.h"
#include "operator/kube/request.h"

namespace stoker::test {

using control::Json;
using control::ObjectKey;
using control::ResourceKind;
namespace kinds = control::kinds;

namespace {

constexpr const char* kNamespace = "ml";
constexpr const char* kOperatorNamespace = "stoker-system";
const ResourceKind kCoreEvents{"", "v1", "events", "Event", true};

std::string now_text() {
    return control::format_time(SystemClock{}.wall_now());
}

std::string metadata(const std::string& name, const std::string& more = "") {
    return fmt::format(R"("metadata":{{"name":"{}"{}}})", name, more);
}

}  // namespace

ObjectKey key_of(const ResourceKind& kind, const std::string& name) {
    return {kind.namespaced ? kNamespace : "", name};
}

FakeCluster::FakeCluster() {
    api_.with_model([](ApiServerModel& model) { model.serve(kCoreEvents, false); });
}

void FakeCluster::add(const ResourceKind& kind, const std::string& name, const std::string& spec) {
    const std::string body = fmt::format("{{{},\"spec\":{}}}", metadata(name), spec);
    const auto made = api_.create(kind, key_of(kind, name).ns, body);
    STOKER_CHECK(made.status == 201, made.body.c_str());
}

void FakeCluster::change(
    const ResourceKind& kind, const std::string& name, const std::string& patch) {
    const auto done = api_.merge(kind, key_of(kind, name), patch);
    STOKER_CHECK(done.status == 200, done.body.c_str());
}

void FakeCluster::remove(const ResourceKind& kind, const std::string& name) {
    api_.erase(kind, key_of(kind, name));
}

void FakeCluster::set_status(
    const ResourceKind& kind, const ObjectKey& key, const std::string& status) {
    const auto body = Json::parse(fmt::format("{{\"status\":{}}}", status));
    STOKER_CHECK(body.has_value(), status.c_str());
    const auto built =
        control::patch_request(kind, key, *body, control::PatchType::kMerge, "status");
    const auto done = api_.request({"PATCH", built.target, built.content_type, built.body});
    STOKER_CHECK(done.status == 200, done.body.c_str());
}

void FakeCluster::apply_status(
    const ResourceKind& kind,
    const std::string& name,
    const std::string& manager,
    const std::string& status) {
    const auto body = Json::parse(fmt::format(
        R"({{"apiVersion":"{}","kind":"{}",{},"status":{}}})",
        kind.api_version(),
        kind.kind,
        metadata(name),
        status));
    STOKER_CHECK(body.has_value(), status.c_str());
    const auto built = control::apply_request(kind, key_of(kind, name), *body, {manager, "status"});
    const auto done = api_.request({"PATCH", built.target, built.content_type, built.body});
    STOKER_CHECK(done.status == 200, done.body.c_str());
}

void FakeCluster::add_node(const std::string& name) {
    add(kinds::kNodes, name, "{}");
    set_status(
        kinds::kNodes,
        {"", name},
        fmt::format(
            R"({{"nodeInfo":{{"bootID":"boot-{}"}},"conditions":[{{"type":"Ready","status":"True"}}]}})",
            name));
}

void FakeCluster::add_pool(const std::string& name, const std::string& capacity) {
    add(kinds::kCachePools,
        name,
        fmt::format(
            R"({{"capacityPerNode":"{}","volume":{{"hostPath":{{"path":"/var/lib/stoker"}}}}}})",
            capacity));
}

std::string FakeCluster::add_dataset(const std::string& name) {
    add(kinds::kDatasets,
        name,
        R"({"sources":[{"storageUri":"s3://bucket/digits","endpoint":"http://origin:9000"}]})");
    return uid_of(kinds::kDatasets, name);
}

void FakeCluster::add_training_job(const std::string& name, int nodes, const std::string& more) {
    add(kinds::kTrainingJobs,
        name,
        fmt::format(
            R"({{"trainer":{{"image":"trainer:1","numNodes":{}}},)"
            R"("datasets":[{{"name":"train","datasetRef":{{"name":"digits"}}}}]{}}})",
            nodes,
            more));
}

std::string FakeCluster::pod_name(const std::string& job, int rank) {
    return fmt::format("{}-{}-x", job, rank);
}

void FakeCluster::run_pods(const std::string& job, const std::string& node) {
    const auto object = find(kinds::kJobs, job);
    STOKER_CHECK(object.has_value(), "there is no such Job");
    const auto ranks = control::integer_at(object->value(), {"spec", "completions"}).value_or(1);
    const std::string owner =
        control::string_at(object->value(), {"metadata", "labels", "stoker.dev/training-job"});
    for (int rank = 0; rank < ranks; ++rank) {
        const std::string name = pod_name(job, rank);
        const std::string labels = fmt::format(
            R"(,"labels":{{"stoker.dev/training-job":"{}","batch.kubernetes.io/job-name":"{}",)"
            R"("batch.kubernetes.io/job-completion-index":"{}"}},)"
            R"("ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"{}","uid":"{}","controller":true}}])",
            owner,
            job,
            rank,
            job,
            uid_of(kinds::kJobs, job));
        const std::string body =
            fmt::format(R"({{{},"spec":{{"nodeName":"{}"}}}})", metadata(name, labels), node);
        const auto made = api_.create(kinds::kPods, kNamespace, body);
        STOKER_CHECK(made.status == 201, made.body.c_str());
        set_status(
            kinds::kPods,
            {kNamespace, name},
            R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})");
    }
    set_status(
        kinds::kJobs,
        {kNamespace, job},
        fmt::format(R"({{"active":{0},"ready":{0},"startTime":"{1}"}})", ranks, now_text()));
}

void FakeCluster::finish(const std::string& job, int exit_code) {
    const std::string type = exit_code == 0 ? "Complete" : "Failed";
    const std::string reason = exit_code == 0 ? "CompletionsReached" : "BackoffLimitExceeded";
    for (const std::string& pod : names(kinds::kPods)) {
        if (pod.starts_with(job + "-")) {
            set_status(
                kinds::kPods,
                {kNamespace, pod},
                fmt::format(
                    R"({{"phase":"{}","containerStatuses":[{{"name":"trainer","state":{{"terminated":{{"exitCode":{},"reason":"{}"}}}}}}]}})",
                    exit_code == 0 ? "Succeeded" : "Failed",
                    exit_code,
                    exit_code == 0 ? "Completed" : "Error"));
        }
    }
    set_status(
        kinds::kJobs,
        {kNamespace, job},
        fmt::format(
            R"({{"active":0,"ready":0,"conditions":[{{"type":"{}","status":"True","reason":"{}","message":"over","lastTransitionTime":"{}"}}]}})",
            type,
            reason,
            now_text()));
}

std::set<std::string> FakeCluster::operator_events(const std::string& training_job) {
    std::set<std::string> reasons;
    const auto events =
        api_.with_model([](ApiServerModel& model) { return model.all(kinds::kEvents); });
    for (const auto& [key, event] : events) {
        if (control::string_at(event.value(), {"regarding", "name"}) == training_job) {
            reasons.insert(control::string_at(event.value(), {"reason"}));
        }
    }
    return reasons;
}

void FakeCluster::add_token(
    const std::string& token, const std::string& pod, const std::string& node) {
    add_token(token, fmt::format("{}:default", kNamespace), pod, node);
}

std::string FakeCluster::add_node_program(const std::string& node) {
    const std::string pod = "stoker-node-" + node;
    const auto made = api_.create(
        kinds::kPods,
        kOperatorNamespace,
        fmt::format(
            R"({{{},"spec":{{"nodeName":"{}"}}}})",
            metadata(pod, R"(,"labels":{"stoker.dev/component":"node"})"),
            node));
    STOKER_CHECK(made.status == 201, made.body.c_str());
    const std::string token = "token.of." + pod;
    add_token(token, fmt::format("{}:stoker-node", kOperatorNamespace), pod, node);
    return token;
}

void FakeCluster::add_token(
    const std::string& token,
    const std::string& account,
    const std::string& pod,
    const std::string& node) {
    const auto user = Json::parse(fmt::format(
        R"({{"username":"system:serviceaccount:{}","extra":{{)"
        R"("authentication.kubernetes.io/pod-name":["{}"],)"
        R"("authentication.kubernetes.io/node-name":["{}"]}}}})",
        account,
        pod,
        node));
    api_.with_model([&](ApiServerModel& model) { model.add_token(token, *user, {"stoker.dev"}); });
}

std::optional<Json> FakeCluster::find(const ResourceKind& kind, const std::string& name) {
    return api_.with_model(
        [&](ApiServerModel& model) { return model.find(kind, key_of(kind, name)); });
}

std::string FakeCluster::uid_of(const ResourceKind& kind, const std::string& name) {
    const auto object = find(kind, name);
    return object ? control::string_at(object->value(), {"metadata", "uid"}) : "";
}

control::TrainingJob FakeCluster::training_job(const std::string& name) {
    const auto object = find(kinds::kTrainingJobs, name);
    return object ? control::parse_document<control::TrainingJob>(object->text()).value()
                  : control::TrainingJob{};
}

std::vector<std::string> FakeCluster::names(const ResourceKind& kind) {
    std::vector<std::string> found;
    api_.with_model([&](ApiServerModel& model) {
        for (const auto& [key, object] : model.all(kind)) {
            if (!kind.namespaced || key.ns == kNamespace) {
                found.push_back(key.name);
            }
        }
    });
    return found;
}

namespace {

std::string condition_text(
    const std::optional<Json>& object, const std::string& type, bool of_message) {
    const auto* conditions =
        object ? control::find_at(object->value(), {"status", "conditions"}) : nullptr;
    if (conditions == nullptr || !conditions->is_array()) {
        return "";
    }
    for (const auto& condition : conditions->as_array()) {
        if (control::string_at(condition, {"type"}) != type) {
            continue;
        }
        return of_message ? control::string_at(condition, {"message"})
                          : control::string_at(condition, {"status"}) + " " +
                                control::string_at(condition, {"reason"});
    }
    return "";
}

}  // namespace

std::string FakeCluster::condition(
    const ResourceKind& kind, const std::string& name, const std::string& type) {
    return condition_text(find(kind, name), type, false);
}

std::string FakeCluster::message(
    const ResourceKind& kind, const std::string& name, const std::string& type) {
    return condition_text(find(kind, name), type, true);
}

}  // namespace stoker::test
