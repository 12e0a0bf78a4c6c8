#include "cli/kubectl_stoker/cluster.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/base/read_file.h"
#include "operator/api/debug_api.h"
#include "operator/core/workload/build_job.h"
#include "operator/kube/lease.h"
#include "operator/kube/request.h"
#include "operator/kube/rest_client.h"
#include "operator/kube/status_error.h"

namespace stoker::cli {

namespace {

namespace kinds = control::kinds;

constexpr const char* kServer = "http://localhost";  // the form that kubectl proxy accepts
constexpr const char* kPath = "/debug/allocation";
constexpr std::uint32_t kTries = 2;
constexpr std::uint32_t kTokenSeconds = 600;  // the API server issues no shorter token
constexpr std::string_view kOperatorSuffix = "-operator";
constexpr int kOk = 200;
constexpr int kCreated = 201;
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr int kNotFound = 404;
constexpr int kUnavailable = 503;

control::RestTransportOptions transport_options() {
    control::RestTransportOptions result;
    result.user_agent = "kubectl-stoker/" STOKER_VERSION;
    return result;
}

control::RestClientOptions client_options(const ConnectOptions& options) {
    control::RestClientOptions result;
    result.time_limit = options.request_timeout;
    result.retry.tries = kTries;
    return result;
}

// The message in a response of the operator, whose body is not a Kubernetes Status.
std::string words_of(const std::string& body) {
    const auto json = control::Json::parse(body);
    return json ? control::string_at(json->value(), {"message"}) : "";
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

}  // namespace

std::string pod_of_holder(const std::string& holder) {
    return holder.substr(0, holder.rfind('_'));
}

std::string explain_account_of(const std::string& lease_name) {
    const bool ours = lease_name.ends_with(kOperatorSuffix);
    const std::string release =
        ours ? lease_name.substr(0, lease_name.size() - kOperatorSuffix.size()) : "stoker";
    return release + "-explain";
}

Result<std::unique_ptr<Cluster>> Cluster::open(const ConnectOptions& options, const Clock& clock) {
    STOKER_TRY(auto kubectl, Kubectl::start(options));
    return std::unique_ptr<Cluster>(new Cluster(std::move(kubectl), options, clock));
}

Cluster::Cluster(
    std::unique_ptr<Kubectl> kubectl, const ConnectOptions& options, const Clock& clock)
    : options_(options),
      kubectl_(std::move(kubectl)),
      access_({kServer, kubectl_->socket(), {}, {}}, read_file, clock),
      transport_(access_, transport_options(), clock),
      client_(std::make_unique<control::RestClient>(
          transport_, client_options(options), clock, std::stop_token{})) {}

Result<control::TrainingJob> Cluster::job(const control::ObjectKey& key) {
    STOKER_TRY(const control::Object object, client_->get(kinds::kTrainingJobs, key));
    return control::read_document<control::TrainingJob>(object.raw);
}

template <class T>
Result<std::vector<T>> Cluster::list(const control::ResourceKind& kind, const std::string& ns) {
    control::Scope scope;
    scope.ns = ns;
    return list<T>(kind, scope);
}

template <class T>
Result<std::vector<T>> Cluster::list(
    const control::ResourceKind& kind, const control::Scope& scope) {
    STOKER_TRY(const std::vector<control::Object> objects, client_->list(kind, scope));
    std::vector<T> result;
    for (const control::Object& object : objects) {
        STOKER_TRY(T item, control::read_document<T>(object.raw));
        result.push_back(std::move(item));
    }
    return result;
}

Result<std::vector<control::TrainingJob>> Cluster::jobs(const std::string& ns) {
    return list<control::TrainingJob>(kinds::kTrainingJobs, ns);
}

Result<std::vector<control::CacheQuota>> Cluster::quotas(const std::string& ns) {
    return list<control::CacheQuota>(kinds::kCacheQuotas, ns);
}

Result<std::vector<control::CachePool>> Cluster::pools() {
    return list<control::CachePool>(kinds::kCachePools, "");
}

Result<control::Dataset> Cluster::dataset(const control::ObjectKey& key) {
    STOKER_TRY(const control::Object object, client_->get(kinds::kDatasets, key));
    return control::read_document<control::Dataset>(object.raw);
}

Result<std::vector<control::Dataset>> Cluster::datasets(const std::string& ns) {
    return list<control::Dataset>(kinds::kDatasets, ns);
}

Result<control::Pod> Cluster::pod(const control::ObjectKey& key) {
    STOKER_TRY(const control::Object object, client_->get(kinds::kPods, key));
    return control::read_document<control::Pod>(object.raw);
}

Result<std::vector<control::Pod>> Cluster::pods_of(const control::ObjectKey& job) {
    control::Scope scope;
    scope.ns = job.ns;
    scope.label_selector = fmt::format("{}={}", control::kJobLabel, job.name);
    STOKER_TRY(std::vector<control::Pod> pods, list<control::Pod>(kinds::kPods, scope));
    std::ranges::sort(pods, {}, [](const control::Pod& pod) {
        return std::pair{control::rank_of(pod), pod.meta.name};
    });
    return pods;
}

Result<std::vector<ReportEvent>> Cluster::events_of(const control::ObjectKey& job) {
    control::Scope scope;
    scope.ns = job.ns;
    scope.field_selector =
        fmt::format("regarding.kind={},regarding.name={}", kinds::kTrainingJobs.kind, job.name);
    STOKER_TRY(const std::vector<control::Object> objects, client_->list(kinds::kEvents, scope));
    std::vector<ReportEvent> events;
    for (const control::Object& object : objects) {
        events.push_back(read_event(object.raw));
    }
    std::ranges::stable_sort(events, {}, &ReportEvent::time);
    return events;
}

Result<std::string> Cluster::find_leader() {
    if (!options_.operator_pod.empty()) {
        return options_.operator_pod;
    }
    const control::ObjectKey key{options_.operator_namespace, options_.lease_name};
    const auto lease = client_->get(kinds::kLeases, key);
    if (!lease && lease.error().code == ErrorCode::kNotFound) {
        return fail(
            ErrorCode::kNotFound,
            fmt::format(
                "there is no Lease {}, so no operator leads there; --operator-namespace and "
                "--lease say where it is, --operator-pod names it where leader election is off",
                to_string(key)));
    }
    if (!lease) {
        return fail(lease.error());
    }
    const std::string pod = pod_of_holder(control::read_lease(lease->raw).holder);
    if (pod.empty()) {
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("no operator leads now (Lease {} is free); try again", to_string(key)));
    }
    return pod;
}

Result<std::string> Cluster::debug_token() {
    if (!debug_token_.empty()) {
        return debug_token_;
    }
    const control::ApiRequest request = control::token_request(
        {options_.operator_namespace, explain_account_of(options_.lease_name)},
        control::kDebugAudience,
        kTokenSeconds);
    STOKER_TRY(
        const control::ApiResponse response,
        transport_.call(request, options_.request_timeout, {}));
    if (response.status != kOk && response.status != kCreated) {
        const control::ApiFailure failure = control::read_failure(response.status, response.body);
        return fail(failure.error().prefixed(request.what));
    }
    STOKER_TRY(const control::Json answer, control::Json::parse(response.body));
    debug_token_ = control::string_at(answer.value(), {"status", "token"});
    if (debug_token_.empty()) {
        return fail(ErrorCode::kUnavailable, request.what + ": the answer contains no token");
    }
    return debug_token_;
}

Result<control::AllocationSnapshot> Cluster::ask(const std::string& pod) {
    STOKER_TRY(const std::string token, debug_token());
    control::ApiRequest request;
    request.target = fmt::format(
        "/api/v1/namespaces/{}/pods/https:{}:{}/proxy{}",
        control::percent_encode(options_.operator_namespace),
        control::percent_encode(pod),
        options_.operator_port.empty() ? std::to_string(control::kDebugPort)
                                       : control::percent_encode(options_.operator_port),
        kPath);
    request.headers.emplace_back(control::kDebugTokenHeader, token);
    request.what = fmt::format("asking {}/{}", options_.operator_namespace, pod);
    STOKER_TRY(
        const control::ApiResponse response,
        transport_.call(request, options_.request_timeout, {}));
    if (response.status == kOk) {
        auto snapshot = control::parse_snapshot(response.body);
        return snapshot ? snapshot : fail(snapshot.error().prefixed(request.what));
    }
    return fail(refusal(pod, request.what, response));
}

Error Cluster::refusal(
    const std::string& pod, const std::string& what, const control::ApiResponse& response) {
    const control::ApiFailure failure = control::read_failure(response.status, response.body);
    if (!failure.reason.empty()) {
        const std::string gone = fmt::format("pod {}, which led last, is gone; try again", pod);
        return response.status == kNotFound ? Error{ErrorCode::kUnavailable, gone}
                                            : failure.error().prefixed(what);
    }
    if (response.status == kUnauthorized || response.status == kForbidden) {
        return {
            ErrorCode::kForbidden,
            fmt::format("{}: the operator refuses: {}", what, first_line(response.body))};
    }
    if (response.status == kNotFound) {
        return {
            ErrorCode::kNotFound,
            fmt::format(
                "the operator in pod {} is older than this program and does not say what it "
                "decides; upgrade it",
                pod)};
    }
    if (response.status == kUnavailable) {
        const std::string words = words_of(response.body);
        return {
            ErrorCode::kUnavailable,
            fmt::format(
                "{}: {}",
                what,
                words.empty()
                    ? "503 without a reason: does a NetworkPolicy let the API server reach "
                      "the operator's debug port?"
                    : words)};
    }
    return failure.error().prefixed(what);
}

Result<control::AllocationSnapshot> Cluster::snapshot() {
    STOKER_TRY(std::string pod, find_leader());
    auto answer = ask(pod);
    if (!answer && answer.error().code == ErrorCode::kUnavailable) {
        // Another operator pod may have become the leader since find_leader().
        STOKER_TRY(const std::string now, find_leader());
        if (now != pod) {
            answer = ask(now);
        }
    }
    return answer;
}

}  // namespace stoker::cli
