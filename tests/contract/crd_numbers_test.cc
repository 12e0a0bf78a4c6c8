// Puts extreme values into every number and quantity of every kind, one at a time. The list of
// fields comes from the CRDs. The operator must survive every value that the CRD admits: its parser
// or validate() rejects meaningless specs, and huge numbers mean "a very long time" or "very many".

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <cpprest/json.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "operator/core/plan_training_job.h"
#include "operator/core/spec/validate.h"
#include "operator/core/status/summarize_dataset.h"
#include "operator/core/status/summarize_pool.h"
#include "operator/core/status/summarize_warmup.h"
#include "operator/core/view/grant_book.h"
#include "operator/core/view/warmups.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

using web::json::value;

constexpr std::int64_t kNow = 1'800'000'000;  // 2027

// Fields of a pod's own structures, which the API server checks when the Job is created.
const std::set<std::string> kPassedThrough = {
    "spec.trainer.env[].valueFrom.resourceFieldRef.divisor"};

struct Field {
    std::string path;  // "spec.podTemplate.spec.tolerations[].tolerationSeconds"
    YAML::Node schema;
};

bool is_number(const YAML::Node& schema) {
    const std::string type = schema["type"] ? schema["type"].as<std::string>() : "";
    return type == "integer" || type == "number" || schema["x-kubernetes-int-or-string"];
}

void gather_numbers(const YAML::Node& schema, const std::string& path, std::vector<Field>& found) {
    if (is_number(schema)) {
        found.push_back({path, schema});
    }
    for (const auto& property : schema["properties"]) {
        gather_numbers(property.second, path + "." + property.first.as<std::string>(), found);
    }
    if (schema["items"]) {
        gather_numbers(schema["items"], path + "[]", found);
    }
    if (schema["additionalProperties"]) {
        gather_numbers(schema["additionalProperties"], path + ".x", found);
    }
}

std::vector<Field> numbers_of(const std::string& plural) {
    const YAML::Node schema = YAML::LoadFile(
        std::string{STOKER_SOURCE_DIR} + "/crds/stoker.dev_" + plural +
        ".yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    std::vector<Field> found;
    gather_numbers(schema["spec"], "spec", found);
    gather_numbers(schema["status"], "status", found);
    return found;
}

value to_json_value(const YAML::Node& node) {
    if (node.IsMap()) {
        value object = value::object();
        for (const auto& entry : node) {
            object[entry.first.as<std::string>()] = to_json_value(entry.second);
        }
        return object;
    }
    if (node.IsSequence()) {
        value list = value::array();
        for (std::size_t i = 0; i < node.size(); ++i) {
            list[i] = to_json_value(node[i]);
        }
        return list;
    }
    std::int64_t number = 0;
    const bool quoted = node.Tag() == "!";
    const std::string text = node.as<std::string>();
    if (!quoted && (text == "true" || text == "false")) {
        return value(text == "true");
    }
    return !quoted && YAML::convert<std::int64_t>::decode(node, number) ? value(number)
                                                                        : value(text);
}

value example(const std::string& name) {
    value document = to_json_value(
        YAML::LoadFile(std::string{STOKER_SOURCE_DIR} + "/crds/examples/" + name + ".yaml"));
    document["metadata"]["namespace"] = value("team");
    document["metadata"]["uid"] = value("uid-" + name);
    return document;
}

// The document with the value at the path; creates objects and lists on the way.
value with(value document, const std::string& path, const value& extreme) {
    value* place = &document;
    std::string rest = path;
    while (!rest.empty()) {
        const std::size_t dot = rest.find('.');
        std::string name = rest.substr(0, dot);
        rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
        const bool is_list = name.ends_with("[]");
        name = is_list ? name.substr(0, name.size() - 2) : name;
        if (!place->has_field(name)) {
            (*place)[name] = is_list ? value::array() : value::object();
        }
        place = &(*place)[name];
        if (is_list) {
            place = &(*place)[0];
            *place = place->is_null() ? value::object() : *place;
        }
    }
    *place = extreme;
    return document;
}

std::vector<value> extremes_of(const YAML::Node& schema) {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    std::vector<value> result;
    for (const std::int64_t number :
         {kMin,
          std::int64_t{-1},
          std::int64_t{0},
          std::int64_t{1} << 31U,
          std::int64_t{9'999'999'999},
          std::int64_t{1} << 53U,
          kMax}) {
        result.emplace_back(number);
    }
    if (schema["x-kubernetes-int-or-string"]) {
        for (const std::string text :
             {"-1",
              "2147483648",
              "9223372036854775807",
              "9223372036854775808",
              "7Ei",
              "8Ei",
              "99999Ei",
              "1e18",
              "1e30",
              "99999999999999999999999999999999"}) {
            result.emplace_back(text);
        }
    }
    return result;
}

double magnitude(const value& extreme) {
    return extreme.is_string() ? (extreme.as_string().starts_with('-') ? -1 : 1)
                               : extreme.as_number().to_double();
}

// Checks minimum, maximum, pattern and maxLength; crd_server_test.py covers CEL.
bool refused_by(const YAML::Node& schema, const value& extreme) {
    if (extreme.is_string()) {
        const std::string text = extreme.as_string();
        return (schema["maxLength"] && text.size() > schema["maxLength"].as<std::size_t>()) ||
               (schema["pattern"] &&
                !std::regex_search(text, std::regex{schema["pattern"].as<std::string>()}));
    }
    const double number = extreme.as_number().to_double();
    return (schema["minimum"] && number < schema["minimum"].as<double>()) ||
           (schema["maximum"] && number > schema["maximum"].as<double>());
}

void expect_possible(const TrainingJobPlan& plan) {
    constexpr Duration kDay = std::chrono::hours{24};
    const Duration wake = plan.requeue_after.value_or(Duration::zero());
    EXPECT_GE(wake, Duration::zero());
    EXPECT_LE(wake, kDay);
    EXPECT_NE(find_condition(plan.status.conditions, "Finished"), nullptr);
}

bool deletes_itself(const TrainingJobPlan& plan) {
    return std::ranges::any_of(plan.actions, [](const Action& action) {
        return std::holds_alternative<DeleteTrainingJob>(action);
    });
}

TrainingJobView view_of(const TrainingJob& job) {
    TrainingJobView view = make_view(job);
    view.pool = resolve_pool(job, {make_pool("gpu-nodes")}, {});
    return view;
}

void plan_new(const TrainingJob& job) {
    const TrainingJobPlan plan = plan_training_job(view_of(job), moment(kNow));
    expect_possible(plan);
    EXPECT_FALSE(deletes_itself(plan));
}

void plan_running(TrainingJob job, bool survives) {
    job.status.attempt = 1;
    job.status.start_time = wall(kNow - 60);
    TrainingJobView view = view_of(job);
    view.service = make_service(view);
    view.jobs = {make_job(view, 1)};
    view.jobs[0].start_time = wall(kNow - 60);
    view.pods = {make_pod(view, 1, 0), make_pod(view, 1, 1)};
    view.reports = {make_report(view, 0, kNow)};
    const TrainingJobPlan plan = plan_training_job(view, moment(kNow));
    expect_possible(plan);
    EXPECT_FALSE(deletes_itself(plan));
    EXPECT_TRUE(!survives || !is_true(plan.status.conditions, "Failed"))
        << find_condition(plan.status.conditions, "Failed")->message;
    ClusterView cluster = make_cluster();
    cluster.pools = {make_pool("gpu-nodes")};
    cluster.jobs = {use_of(view)};
    cluster.reports = view.reports;
    const AllocationPlan given = plan_allocation(view_allocation(cluster, moment(kNow)));
    for (const Grant& grant : given.grants) {
        EXPECT_LE(grant.resident_bytes, gib(100));
    }
}

void plan_finished(TrainingJob job, bool stays) {
    job.status.attempt = 1;
    job.status.completion_time = wall(kNow - 60);
    set_condition(
        job.status.conditions,
        {"Complete", ConditionStatus::kTrue, 1, wall(kNow - 60), "Complete", ""});
    const TrainingJobPlan plan = plan_training_job(view_of(job), moment(kNow));
    expect_possible(plan);
    EXPECT_TRUE(!stays || !deletes_itself(plan));
}

using Complaint = std::optional<std::string>;  // from parser or validate(); nullopt: accepted

Complaint try_training_job(const value& document, const value& extreme) {
    const Result<TrainingJob> job = parse_document<TrainingJob>(document.serialize());
    if (!job) {
        return job.error().message;
    }
    plan_new(*job);
    plan_running(*job, magnitude(extreme) >= 3600);
    plan_finished(*job, magnitude(extreme) >= 3600);
    EXPECT_TRUE(read_document<TrainingJob>(status_patch(*job)));
    const std::string wrong = to_string(validate(*job));
    return wrong.empty() ? Complaint{} : wrong;
}

Complaint try_dataset(const value& document, const value& /*extreme*/) {
    const Result<Dataset> dataset = parse_document<Dataset>(document.serialize());
    if (!dataset) {
        return dataset.error().message;
    }
    DatasetView seen;
    seen.dataset = *dataset;
    seen.nodes = {"n1"};
    EXPECT_GE(summarize_dataset(seen, moment(kNow)).cached_bytes, 0);
    TrainingJobView view = make_running_view();
    view.job.spec.datasets[0].dataset_ref = dataset->meta.name;
    view.datasets = resolve_datasets(view.job, {*dataset});
    ClusterView cluster = make_cluster();
    cluster.datasets = {*dataset};
    cluster.jobs = {use_of(view)};
    static_cast<void>(find_places(cluster, moment(kNow)));
    const AllocationPlan given = plan_allocation(view_allocation(cluster, moment(kNow)));
    for (const Grant& grant : given.grants) {
        EXPECT_LE(grant.resident_bytes, gib(100));
    }
    const std::string wrong = to_string(validate(*dataset));
    return wrong.empty() ? Complaint{} : wrong;
}

Complaint try_warmup(const value& document, const value& /*extreme*/) {
    Result<DatasetWarmup> warmup = parse_document<DatasetWarmup>(document.serialize());
    if (!warmup) {
        return warmup.error().message;
    }
    WarmupView view;
    view.warmup = *warmup;
    view.dataset = make_dataset();
    view.pool.name = "nvme";
    view.cache_pool = make_pool();
    view.nodes = {make_node("n1"), make_node("n2")};
    EXPECT_LE(summarize_warmup(view, moment(kNow)).nodes.size(), 2U);
    static_cast<void>(needs_fillers(*warmup, wall(kNow)));
    ClusterView cluster = make_cluster();
    cluster.warmups = {*warmup};
    std::vector<Grant> grants;
    order_fills(cluster, {}, {{"nvme", 1, 3}}, moment(kNow), grants);
    const std::string wrong = to_string(validate(*warmup));
    return wrong.empty() ? Complaint{} : wrong;
}

Complaint try_pool(const value& document, const value& /*extreme*/) {
    Result<CachePool> pool = parse_document<CachePool>(document.serialize());
    if (!pool) {
        return pool.error().message;
    }
    pool->spec.node_selector.clear();
    pool->meta.name = "nvme";
    ClusterView cluster = make_cluster();
    cluster.pools = {*pool};
    static_cast<void>(plan_allocation(view_allocation(cluster, moment(kNow))));
    CachePoolView view;
    view.pool = *pool;
    view.nodes = cluster.nodes;
    EXPECT_GE(summarize_cache_pool(view, moment(kNow)).capacity_bytes, 0);
    const std::string wrong = to_string(validate(*pool));
    return wrong.empty() ? Complaint{} : wrong;
}

Complaint try_quota(const value& document, const value& /*extreme*/) {
    Result<CacheQuota> quota = parse_document<CacheQuota>(document.serialize());
    if (!quota) {
        return quota.error().message;
    }
    quota->spec.pool_ref = "nvme";
    ClusterView cluster = make_cluster();
    cluster.quotas = {*quota};
    static_cast<void>(plan_allocation(view_allocation(cluster, moment(kNow))));
    CacheQuotaView view;
    view.quota = *quota;
    view.quotas = {*quota};
    EXPECT_GE(summarize_cache_quota(view, moment(kNow)).used_bytes, 0);
    const std::string wrong = to_string(validate(*quota));
    return wrong.empty() ? Complaint{} : wrong;
}

struct Kind {
    std::string plural;
    std::string example;
    std::function<Complaint(const value&, const value&)> try_it;
};

std::vector<Kind> kinds() {
    return {
        {"trainingjobs", "trainingjob-full", try_training_job},
        {"datasets", "dataset-s3", try_dataset},
        {"datasetwarmups", "datasetwarmup", try_warmup},
        {"cachepools", "cachepool", try_pool},
        {"cachequotas", "cachequota", try_quota}};
}

TEST(CrdNumbers, ExamplesAreValidWithoutExtremes) {
    for (const Kind& kind : kinds()) {
        const Complaint complaint = kind.try_it(example(kind.example), value(3600));
        EXPECT_FALSE(complaint) << kind.plural << ": " << *complaint;
    }
}

TEST(CrdNumbers, NegativeNumbersAreRejectedAndExtremeOnesCrashNothing) {
    std::size_t fields = 0;
    for (const Kind& kind : kinds()) {
        for (const Field& field : numbers_of(kind.plural)) {
            ++fields;
            for (const value& extreme : extremes_of(field.schema)) {
                SCOPED_TRACE(kind.plural + " " + field.path + " = " + extreme.serialize());
                const value document = with(example(kind.example), field.path, extreme);
                const bool is_spec = field.path.starts_with("spec");
                // A status with an extreme number may make the job fail: it may have been active
                // for too long.
                const Complaint complaint = kind.try_it(document, is_spec ? extreme : value(0));
                const bool is_wrong =
                    magnitude(extreme) < 0 && is_spec && !kPassedThrough.contains(field.path);
                EXPECT_TRUE(!is_wrong || complaint || refused_by(field.schema, extreme))
                    << "a negative number is accepted";
            }
        }
    }
    EXPECT_GT(fields, 80U);
}

}  // namespace
}  // namespace stoker::control
