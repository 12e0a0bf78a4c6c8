#include "operator/kube/watch.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/base/check.h"
#include "operator/kube/list_page.h"
#include "operator/kube/pause.h"

namespace stoker::control {

namespace {

constexpr Duration kShortestGoodWatch = std::chrono::seconds{1};

}  // namespace

WatchMachine::WatchMachine(WatchOptions options, std::uint64_t seed)
    : options_(std::move(options)),
      prng_(seed),
      back_off_(options_.back_off, prng_()) {}

WatchStep WatchMachine::next_step(TimePoint now) {
    STOKER_CHECK(!streaming(), "a watch is open; its end must be reported first");
    if (now < not_before_) {
        return WaitUntil{not_before_};
    }
    if (std::holds_alternative<Empty>(state_)) {
        state_ = start_list();
    }
    if (const auto* list = std::get_if<Listing>(&state_)) {
        return list_step(*list);
    }
    return watch_step();
}

WatchMachine::Listing WatchMachine::start_list() const {
    Listing list;
    if (!version_unavailable_) {
        list.asked_version = last_version_.empty() ? "0" : last_version_;
    }
    // A limit together with a numbered version would bypass the server's cache and read its
    // database.
    list.paged = list.asked_version.empty() || list.asked_version == "0" || paginated_;
    return list;
}

SendRequest WatchMachine::list_step(const Listing& list) const {
    ListParams params;
    params.scope = options_.scope;
    params.resource_version = list.asked_version;
    params.limit = list.paged ? options_.page_size : 0;
    params.continue_token = list.continue_token;
    return SendRequest{list_request(options_.kind, params), false, options_.list_time_limit};
}

SendRequest WatchMachine::watch_step() {
    const std::uint32_t spread = options_.watch_seconds_max - options_.watch_seconds_min;
    WatchParams params;
    params.scope = options_.scope;
    params.resource_version = last_version_;
    params.timeout_seconds = options_.watch_seconds_min +
                             static_cast<std::uint32_t>(prng_.below(std::uint64_t{spread} + 1));
    const Duration limit = std::chrono::seconds{params.timeout_seconds} + options_.watch_grace;
    const bool synthetic = last_version_.empty() || last_version_ == "0";
    state_ = Watching{{}, 0, synthetic, LineSplitter(options_.line_bytes_max)};
    return SendRequest{watch_request(options_.kind, params), true, limit};
}

WatchEvents WatchMachine::on_response(const ApiResponse& response, TimePoint now) {
    if (!streaming() && response.status == 200) {
        on_list_open();
        on_list_bytes(response.body);
        return on_list_end(now);
    }
    const ApiFailure failure = read_failure(response.status, response.body, response.retry_after);
    return streaming() ? on_watch_refused(failure, now) : on_list_refused(failure, now);
}

void WatchMachine::on_list_open() {
    auto& list = std::get<Listing>(state_);
    list.troubles.clear();
    list.page = std::make_unique<ListReader>(
        [this](web::json::value&& item) { take_item(std::move(item)); });
}

void WatchMachine::take_item(web::json::value&& item) {
    auto& list = std::get<Listing>(state_);
    if (auto object = read_item(std::move(item))) {
        list.objects.push_back(*std::move(object));
    } else {
        list.troubles.emplace_back(Troubled{Error{
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a list of {} contains an object of another kind, skipped",
                options_.kind.plural)}});
    }
}

bool WatchMachine::on_list_bytes(std::string_view bytes) {
    return std::get<Listing>(state_).page->push(bytes).has_value();
}

WatchEvents WatchMachine::on_list_end(TimePoint now) {
    auto& list = std::get<Listing>(state_);
    const Result<ListPage> page = list.page->finish();
    list.page.reset();
    if (!page) {
        return {list_again(page.error(), now)};
    }
    WatchEvents events = std::move(list.troubles);
    if (list.list_version.empty()) {
        list.list_version = page->resource_version;
    }
    if (!page->continue_token.empty()) {
        paginated_ = paginated_ || list.asked_version == "0";
        list.continue_token = page->continue_token;
        return events;
    }
    version_unavailable_ = false;
    last_version_ = list.list_version;
    events.emplace_back(Replaced{std::move(list.objects), last_version_});
    state_ = Listed{};
    return events;
}

WatchEvents WatchMachine::on_list_refused(const ApiFailure& failure, TimePoint now) {
    const auto& list = std::get<Listing>(state_);
    const Error error = failure.error().prefixed("listing " + options_.kind.plural);
    if (failure.is_expired() && !list.continue_token.empty()) {
        Listing whole;
        whole.asked_version = list.asked_version;
        whole.paged = false;
        state_ = std::move(whole);
        return {Troubled{error, true}};
    }
    const bool unavailable = failure.is_expired() || failure.is_resource_version_too_large();
    if (unavailable && !version_unavailable_) {
        version_unavailable_ = true;
        state_ = Empty{};
        return {Troubled{error, true}};
    }
    version_unavailable_ = version_unavailable_ || unavailable;
    back_off(now, failure.retry_after);
    state_ = Empty{};
    return {Troubled{error, true}};
}

WatchEvents WatchMachine::on_watch_refused(const ApiFailure& failure, TimePoint now) {
    Error error = failure.error().prefixed("watching " + options_.kind.plural);
    if (failure.is_too_many_requests()) {
        return {watch_again(std::move(error), now, failure.retry_after)};
    }
    return {list_again(std::move(error), now)};
}

WatchEvents WatchMachine::on_failure(const Error& error, TimePoint now) {
    if (streaming()) {
        return {watch_again(error.prefixed("watching " + options_.kind.plural), now)};
    }
    return {list_again(error.prefixed("listing " + options_.kind.plural), now)};
}

void WatchMachine::on_open(TimePoint now) {
    std::get<Watching>(state_).opened = now;
}

WatchEvents WatchMachine::on_bytes(std::string_view bytes, TimePoint now) {
    WatchEvents events;
    if (!streaming()) {
        return events;
    }
    std::get<Watching>(state_).lines.push(bytes);
    while (auto* watch = std::get_if<Watching>(&state_)) {
        const auto line = watch->lines.next();
        if (watch->lines.overflowed()) {
            events.emplace_back(list_again(
                Error{
                    ErrorCode::kResourceExhausted,
                    fmt::format(
                        "an event of {} is longer than {} bytes",
                        options_.kind.plural,
                        options_.line_bytes_max)},
                now));
            break;
        }
        if (!line) {
            break;
        }
        // Copies the line: it is part of the state, which may change below.
        on_line(std::string(*line), now, events);
    }
    return events;
}

void WatchMachine::on_line(const std::string& line, TimePoint now, WatchEvents& events) {
    std::error_code error;
    auto document = web::json::value::parse(line, error);
    const std::string type = error ? std::string() : string_at(document, {"type"});
    const auto* object = error ? nullptr : find_at(document, {"object"});
    if (type.empty() || object == nullptr) {
        events.emplace_back(list_again(
            Error{ErrorCode::kInvalidArgument, "an event cannot be parsed: " + error.message()},
            now));
        return;
    }
    std::get<Watching>(state_).events++;
    if (type == "ERROR") {
        const ApiFailure failure = read_status(*object);
        Error cause = failure.error().prefixed("watching " + options_.kind.plural);
        if (failure.is_internal()) {
            internal_errors_since_ = internal_errors_since_.value_or(now);
        }
        const bool bear_with_it =
            failure.is_internal() && now - *internal_errors_since_ < options_.internal_error_bound;
        events.emplace_back(
            failure.is_too_many_requests() || bear_with_it
                ? watch_again(std::move(cause), now, failure.retry_after)
                : list_again(std::move(cause), now));
        return;
    }
    internal_errors_since_.reset();
    if (type == "BOOKMARK") {
        on_bookmark(*object, now, events);
    } else {
        on_change(type, std::move(document.at("object")), now, events);
    }
}

void WatchMachine::on_bookmark(const web::json::value& raw, TimePoint now, WatchEvents& events) {
    const std::string version = string_at(raw, {"metadata", "resourceVersion"});
    if (!version.empty() && note_version(version, false, now, events)) {
        events.emplace_back(Bookmarked{version});
    }
}

void WatchMachine::on_change(
    std::string_view type, web::json::value&& raw, TimePoint now, WatchEvents& events) {
    auto object = read_item(std::move(raw));
    const bool removed = type == "DELETED";
    const bool known = removed || type == "ADDED" || type == "MODIFIED";
    if (!known || !object) {
        events.emplace_back(Troubled{Error{
            ErrorCode::kInvalidArgument,
            fmt::format(
                "a watch of {} sent an object of another kind, skipped", options_.kind.plural)}});
        return;
    }
    if (!note_version(object->resource_version, type == "ADDED", now, events)) {
        return;
    }
    if (removed) {
        events.emplace_back(Removed{*std::move(object)});
    } else {
        events.emplace_back(Upserted{*std::move(object)});
    }
}

// Notes an event's version. False if it proves that this stream is not reliable.
bool WatchMachine::note_version(
    const std::string& version, bool added, TimePoint now, WatchEvents& events) {
    auto& watch = std::get<Watching>(state_);
    if (watch.synthetic && added) {
        return true;
    }
    const auto order = compare_resource_versions(version, last_version_);
    if (!watch.synthetic && order && *order == std::strong_ordering::less) {
        events.emplace_back(list_again(
            Error{
                ErrorCode::kInternal,
                fmt::format(
                    "the watch's resource version fell from {} to {}", last_version_, version)},
            now));
        return false;
    }
    watch.synthetic = false;
    if (!version.empty()) {
        last_version_ = version;
    }
    return true;
}

WatchEvents WatchMachine::on_end(TimePoint now) {
    const auto* watch = std::get_if<Watching>(&state_);
    if (watch == nullptr) {
        return {};
    }
    if (watch->events == 0 && now - watch->opened < kShortestGoodWatch) {
        return {
            list_again(Error{ErrorCode::kUnavailable, "watch closed at once without events"}, now)};
    }
    state_ = Listed{};
    return {};
}

// nullopt: not an object of the watched kind.
std::optional<Object> WatchMachine::read_item(web::json::value&& raw) const {
    const std::string api_version = options_.kind.api_version();
    auto object = read_object(std::move(raw), api_version, options_.kind.kind);
    if (!object || object->kind != options_.kind.kind || object->api_version != api_version) {
        return std::nullopt;
    }
    if (options_.transform) {
        options_.transform(*object);
    }
    return *std::move(object);
}

void WatchMachine::back_off(TimePoint now, std::optional<Duration> at_least) {
    not_before_ = now + std::max(back_off_.next(now), at_least.value_or(Duration::zero()));
}

Troubled WatchMachine::list_again(Error error, TimePoint now) {
    back_off(now);
    state_ = Empty{};
    return Troubled{std::move(error), true};
}

Troubled WatchMachine::watch_again(Error error, TimePoint now, std::optional<Duration> at_least) {
    back_off(now, at_least);
    state_ = Listed{};
    return Troubled{std::move(error), false};
}

WatchLoop::WatchLoop(
    ApiTransport& transport,
    WatchOptions options,
    Apply apply,
    const Clock& clock,
    std::uint64_t seed)
    : transport_(&transport),
      machine_(std::move(options), seed),
      apply_(std::move(apply)),
      clock_(&clock) {}

void WatchLoop::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        const WatchStep step = next_step();
        if (const auto* wait = std::get_if<WaitUntil>(&step)) {
            pause_until(*clock_, wait->at, stop);
            continue;
        }
        const auto& send = std::get<SendRequest>(step);
        if (send.stream) {
            watch(send, stop);
        } else {
            list(send, stop);
        }
    }
}

void WatchLoop::list(const SendRequest& send, const std::stop_token& stop) {
    bool was_open = false;
    bool readable = true;
    ApiStreamSink sink;
    sink.on_open = [&] {
        was_open = true;
        machine_.on_list_open();
    };
    sink.on_bytes = [&](std::string_view bytes) {
        readable = machine_.on_list_bytes(bytes);
        return readable;
    };
    const auto end = transport_->stream(send.request, send.time_limit, sink, stop);
    if (stop.stop_requested()) {
        return;
    }
    if (was_open && (end || !readable)) {
        deliver(machine_.on_list_end(clock_->now()));
    } else {
        answered(end);
    }
}

void WatchLoop::answered(const Result<ApiResponse>& response) {
    deliver(
        response ? machine_.on_response(*response, clock_->now())
                 : machine_.on_failure(response.error(), clock_->now()));
}

bool WatchLoop::received(std::string_view bytes) {
    deliver(machine_.on_bytes(bytes, clock_->now()));
    return machine_.streaming();
}

void WatchLoop::watch(const SendRequest& send, const std::stop_token& stop) {
    bool was_open = false;
    ApiStreamSink sink;
    sink.on_open = [&] {
        was_open = true;
        opened();
    };
    sink.on_bytes = [&](std::string_view bytes) { return received(bytes); };
    const auto end = transport_->stream(send.request, send.time_limit, sink, stop);
    if (stop.stop_requested()) {
        return;
    }
    if (was_open) {
        ended();
    } else {
        answered(end);
    }
}

void WatchLoop::deliver(WatchEvents events) {
    for (WatchEvent& event : events) {
        apply_(std::move(event));
    }
}

}  // namespace stoker::control
