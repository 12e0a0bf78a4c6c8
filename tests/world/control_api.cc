#include "tests/world/control_api.h"

#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/kube/request.h"

namespace stoker::world {

using control::ApiRequest;
using control::ApiResponse;
using test::ModelAnswer;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ResourceKind* const kKinds[] = {
    &control::kinds::kPods,
    &control::kinds::kServices,
    &control::kinds::kNodes,
    &control::kinds::kNamespaces,
    &control::kinds::kJobs,
    &control::kinds::kTrainingJobs,
    &control::kinds::kDatasets,
    &control::kinds::kDatasetWarmups,
    &control::kinds::kCachePools,
    &control::kinds::kCacheQuotas};

test::ModelRequest model_request(const ApiRequest& request, std::string manager) {
    return {
        std::string(control::to_string(request.verb)),
        request.target,
        request.content_type,
        request.body,
        std::move(manager)};
}

// A Job is removed after its pods, as with foreground deletion.
test::ModelRequest with_finalizer(test::ModelRequest request) {
    if (request.method == "POST" && request.target.find("/jobs") != std::string::npos) {
        auto job = Json::parse(request.body)->value();
        job["metadata"]["finalizers"][0] = web::json::value("stoker.test/ends-first");
        request.body = job.serialize();
    }
    return request;
}

bool is_write(const ApiRequest& request) {
    return request.verb != control::Verb::kGet;
}

}  // namespace

ModelAnswer ControlApi::execute(const test::ModelRequest& request) {
    const std::uint64_t before = model_.version();
    ModelAnswer answer = model_.handle(request, schedule_.clock().wall_now());
    if (model_.version() != before) {
        for (ControlWatch* watch : watches_) {
            watch->wake();
        }
    }
    return answer;
}

ModelAnswer ControlApi::create(
    const ResourceKind& kind, const std::string& ns, const std::string& body) {
    auto object = Json::parse(body)->value();
    object["apiVersion"] = web::json::value(kind.api_version());
    object["kind"] = web::json::value(kind.kind);
    return execute(model_request(create_request(kind, ns, Json(std::move(object))), "cluster"));
}

ModelAnswer ControlApi::merge(
    const ResourceKind& kind,
    const ObjectKey& key,
    const std::string& patch,
    std::string_view subresource) {
    return execute(model_request(
        patch_request(
            kind, key, Json::parse(patch).value(), control::PatchType::kMerge, subresource),
        "cluster"));
}

ModelAnswer ControlApi::remove(const ResourceKind& kind, const ObjectKey& key) {
    return execute(model_request(delete_request(kind, key, {}), "cluster"));
}

std::optional<Result<ApiResponse>> ControlApi::fault_for(const ApiRequest& request) {
    if (faults.is_down) {
        return fail(ErrorCode::kUnavailable, "connection refused");
    }
    if (schedule_.draw_chance(faults.refused)) {
        const bool busy = schedule_.luck().below(2) == 0;
        const ModelAnswer answer = busy ? test::status_answer(503, "ServiceUnavailable", "busy")
                                        : test::status_answer(500, "InternalError", "etcd");
        return ApiResponse{answer.status, answer.body};
    }
    const bool may_conflict = is_write(request) && request.verb != control::Verb::kPost;
    if (may_conflict && schedule_.draw_chance(faults.conflicts)) {
        const ModelAnswer answer =
            test::status_answer(409, "Conflict", "the object has been modified");
        return ApiResponse{answer.status, answer.body};
    }
    return std::nullopt;
}

Result<ApiResponse> ControlApi::call(const ApiRequest& request, const std::string& process) {
    if (auto fault = fault_for(request)) {
        return *std::move(fault);
    }
    if (is_write(request)) {
        schedule_.say(fmt::format("{} {}", process, request.what));
        if (on_operator_write) {
            on_operator_write({request, process});
        }
    }
    const bool any_state = request.traffic == control::Traffic::kList &&
                           request.target.find("resourceVersion=0") != std::string::npos;
    if (any_state && faults.lists_are_stale && stale_) {
        const ModelAnswer old =
            stale_->handle(model_request(request, process), schedule_.clock().wall_now());
        return ApiResponse{old.status, old.body};
    }
    const ModelAnswer answer = execute(with_finalizer(model_request(request, process)));
    if (schedule_.draw_chance(faults.lost)) {
        return fail(ErrorCode::kUnavailable, "the connection was reset");
    }
    return ApiResponse{answer.status, answer.body};
}

ControlApi::Opened ControlApi::open(const ApiRequest& request) {
    if (auto fault = fault_for(request)) {
        return {std::nullopt, *std::move(fault)};
    }
    ModelAnswer answer = execute(model_request(request, ""));
    return {std::move(answer.watch), ApiResponse{answer.status, answer.body}};
}

test::WatchCursor ControlApi::follow(const ResourceKind& kind, bool with_state) {
    control::WatchParams params;
    params.resource_version = with_state ? "" : std::to_string(model_.version());
    return *execute(model_request(control::watch_request(kind, params), "")).watch;
}

void ControlApi::cut_watches() {
    for (ControlWatch* watch : std::vector<ControlWatch*>{watches_}) {
        watch->end();
    }
}

void ControlApi::compact() {
    for (const ResourceKind* kind : kKinds) {
        model_.compact(*kind);
    }
}

void ControlApi::begin_stale_lists() {
    stale_ = model_.backup();
    faults.lists_are_stale = true;
}

ControlWatch::ControlWatch(
    Schedule& schedule, ControlApi& api, control::WatchLoop& loop, std::string process)
    : schedule_(schedule),
      api_(api),
      loop_(loop),
      process_(std::move(process)) {
    api_.watches_.push_back(this);
}

ControlWatch::~ControlWatch() {
    std::erase(api_.watches_, this);
}

void ControlWatch::in(Duration delay, void (ControlWatch::*step)()) {
    schedule_.run_in(delay, [weak = weak_from_this(), step, stream = stream_] {
        const auto self = weak.lock();
        if (self && self->stream_ == stream) {
            self->schedule_.set_speaker(self->process_);
            ((*self).*step)();
        }
    });
}

Duration ControlWatch::latency() {
    return schedule_.draw_scale(milliseconds{1}, milliseconds{200});
}

void ControlWatch::go_on() {
    const control::WatchStep step = loop_.next_step();
    if (const auto* wait = std::get_if<control::WaitUntil>(&step)) {
        in(wait->at - schedule_.now(), &ControlWatch::go_on);
        return;
    }
    const auto& send = std::get<control::SendRequest>(step);
    if (send.stream) {
        open(send);
    } else {
        answer(api_.call(send.request, process_));
    }
}

void ControlWatch::answer(Result<ApiResponse> response) {
    answer_ = std::move(response);
    in(latency(), &ControlWatch::take_answer);
}

void ControlWatch::take_answer() {
    loop_.answered(*std::exchange(answer_, std::nullopt));
    go_on();
}

void ControlWatch::open(const control::SendRequest& send) {
    ControlApi::Opened opened = api_.open(send.request);
    if (!opened.cursor) {
        answer(std::move(opened.refusal));
        return;
    }
    ++stream_;
    is_polling_ = wants_bookmark_ = false;
    cursor_ = std::move(opened.cursor);
    loop_.opened();
    in(seconds{cursor_->timeout_seconds}, &ControlWatch::end);
    in(seconds{60}, &ControlWatch::add_bookmark);
    wake();
}

void ControlWatch::wake() {
    if (cursor_ && !is_polling_) {
        is_polling_ = true;
        in(schedule_.draw_scale(milliseconds{1}, api_.faults.watch_lag), &ControlWatch::poll);
    }
}

void ControlWatch::poll() {
    is_polling_ = false;
    test::WatchBatch batch = api_.poll(*cursor_);
    if (std::exchange(wants_bookmark_, false) && cursor_->bookmarks && !batch.ended) {
        batch.lines.push_back(api_.bookmark(*cursor_));
        in(seconds{60}, &ControlWatch::add_bookmark);
    }
    for (const std::string& line : batch.lines) {
        if (!loop_.received(line)) {
            ++stream_;
            cursor_.reset();
            go_on();
            return;
        }
    }
    if (batch.ended) {
        end();
    }
}

// Delivers a bookmark, with the delay of an event.
void ControlWatch::add_bookmark() {
    wants_bookmark_ = true;
    wake();
}

void ControlWatch::end() {
    if (cursor_) {
        ++stream_;
        cursor_.reset();
        loop_.ended();
        go_on();
    }
}

Result<ApiResponse> ControlTransport::call(
    const ApiRequest& request, Duration /*time_limit*/, std::stop_token /*stop*/) {
    if (is_dead()) {
        return fail(ErrorCode::kCancelled, "the process is dead");
    }
    if (calls_left_) {
        --*calls_left_;
    }
    return api_.call(request, process_);
}

Result<control::ApiStreamEnd> ControlTransport::stream(
    const ApiRequest& /*request*/,
    Duration /*time_limit*/,
    const control::ApiStreamSink& /*sink*/,
    std::stop_token /*stop*/) {
    return fail(ErrorCode::kInternal, "the world steps the watches itself");
}

}  // namespace stoker::world
