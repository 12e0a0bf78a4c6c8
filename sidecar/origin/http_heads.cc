#include "sidecar/origin/http_heads.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "sidecar/origin/http_answer.h"
#include "sidecar/origin/http_version.h"
#include "sidecar/origin/retry.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kHeadsMax = 64;
constexpr auto kProgressInterval = std::chrono::milliseconds{200};

std::optional<std::uint64_t> length_of(const http::Headers& headers) {
    const std::string* text = http::find_header(headers, "Content-Length");
    std::uint64_t bytes = 0;
    if (text == nullptr) {
        return std::nullopt;
    }
    const char* end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, bytes);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{bytes} : std::nullopt;
}

// Size and version of an object, from the head of an answer; or why the head is not usable.
struct ObjectHead {
    std::uint64_t size_bytes = 0;
    std::string version{};
    std::optional<OriginFailure> failure{};
};

ObjectHead read_head(
    std::uint64_t listed_bytes, int status, const http::Headers& headers, WallTime now) {
    if (status < 200 || status >= 300) {
        return {.failure = failure_of_http_status(status, headers, now)};
    }
    if (auto failure = check_plain(status, headers)) {
        return {.failure = std::move(failure)};
    }
    if (auto failure = check_no_page(headers); failure && listed_bytes == kUnknownBytes) {
        return {.failure = std::move(failure)};
    }
    const auto bytes = length_of(headers);
    const auto version = http_version_of(headers);
    if (!bytes || !version) {
        return {
            .failure = refuse(fmt::format(
                "the server's answer to HEAD has no {}, so a change of the object could not be "
                "noticed",
                bytes ? "ETag and no Last-Modified" : "Content-Length"))};
    }
    if (listed_bytes != kUnknownBytes && listed_bytes != *bytes) {
        return {
            .failure = refuse(fmt::format(
                "the object has {} bytes and {} in the index; make the index again",
                *bytes,
                listed_bytes))};
    }
    return {*bytes, *version, check_http_version(*version, headers)};
}

// The HEAD requests for all objects. Its state belongs to the client's thread, except where noted;
// timers for retries hold only a weak pointer to it.
class HeadRun : public std::enable_shared_from_this<HeadRun> {
public:
    HeadRun(
        const HttpLocation& location,
        ListingContext& context,
        const domain::Listing& wanted,
        domain::Listing& found)
        : location_(location),
          context_(context),
          wanted_(wanted),
          found_(found) {}

    // Waits for the end. Runs on the caller's thread.
    Status wait(const std::function<void(std::uint64_t)>& progress, const std::stop_token& stop) {
        std::future<void> over = over_.get_future();
        on_thread([](HeadRun& run) { run.start_more(); });
        bool stopping = false;
        while (over.wait_for(kProgressInterval) != std::future_status::ready) {
            if (stop.stop_requested() && !std::exchange(stopping, true)) {
                on_thread([](HeadRun& run) { run.end({ErrorCode::kCancelled, "stopped"}); });
            }
            if (progress) {
                progress(found_count_.load());
            }
        }
        return error_ ? Status{fail(*error_)} : Status{};
    }

private:
    struct Head {
        std::size_t index = 0;  // in wanted_
        std::uint32_t attempt = 0;
        ObjectHead answer{};
    };

    using HeadPtr = std::shared_ptr<Head>;

    template <class Event>
    void on_thread(Event event, TimePoint when = {}) {
        context_.client.run_at(when, [weak = weak_from_this(), event = std::move(event)] {
            if (const auto run = weak.lock()) {
                event(*run);
            }
        });
    }

    void start_more();
    void send(const HeadPtr& head);
    void on_answer(const HeadPtr& head, const Status& transport);
    void on_failed(const HeadPtr& head, const OriginFailure& failure);
    void end(Error error);
    void finish_if_over();

    const HttpLocation& location_;
    ListingContext& context_;
    const domain::Listing& wanted_;
    domain::Listing& found_;
    std::size_t next_ = 0;    // next object of wanted_ to start
    std::uint32_t open_ = 0;  // objects started and not answered, waiting for a retry included
    std::unordered_set<http::CallId> calls_;
    std::optional<Error> error_;  // may be read on any thread once over_ is set
    bool is_over_ = false;
    std::atomic<std::uint64_t> found_count_ = 0;  // any thread
    std::promise<void> over_;
};

void HeadRun::start_more() {
    const std::uint32_t most = std::min(kHeadsMax, std::max(context_.options.max_in_flight, 1U));
    while (!error_ && open_ < most && next_ < wanted_.size()) {
        ++open_;
        send(std::make_shared<Head>(Head{next_++}));
    }
    finish_if_over();
}

void HeadRun::send(const HeadPtr& head) {
    ++head->attempt;
    head->answer = {};
    // A web server's credentials are in files, so they are available at once.
    const auto credentials = context_.credentials.try_get([] {});
    if (!credentials || !*credentials) {
        on_failed(
            head,
            failure_of_transport(
                credentials ? credentials->error()
                            : Error{ErrorCode::kUnavailable, "credentials are not ready"}));
        return;
    }
    http::HttpRequest request =
        http_request(location_, "HEAD", wanted_[head->index].key, **credentials);
    set_timeouts(request, context_.options);
    http::HttpSink sink;
    sink.on_response = [this, head](int status, const http::Headers& headers) {
        count_request(context_, "head", std::to_string(status));
        head->answer =
            read_head(wanted_[head->index].size_bytes, status, headers, context_.clock.wall_now());
    };
    const auto call = std::make_shared<http::CallId>();
    sink.on_done = [run = shared_from_this(), head, call](const Status& transport) {
        run->calls_.erase(*call);
        run->on_answer(head, transport);
    };
    *call = context_.client.start(std::move(request), std::move(sink));
    calls_.insert(*call);
}

void HeadRun::on_answer(const HeadPtr& head, const Status& transport) {
    ObjectHead& answer = head->answer;
    if (!answer.failure && !transport) {
        count_request(context_, "head", std::string{to_string(transport.error().code)});
        answer.failure = failure_of_transport(transport.error());
    }
    if (answer.failure) {
        on_failed(head, *answer.failure);
        return;
    }
    --open_;
    if (const auto added = found_.add(wanted_[head->index].key, answer.size_bytes, answer.version);
        !added) {
        end(added.error());
        return;
    }
    found_count_ = found_.size();
    start_more();
}

void HeadRun::on_failed(const HeadPtr& head, const OriginFailure& failure) {
    const auto delay = next_delay(
        context_.options.retry,
        {head->attempt, failure.may_pass, failure.retry_after},
        context_.random);
    if (delay && !error_) {
        count_retry(context_);
        on_thread(
            [head](HeadRun& run) {
                if (!run.error_) {
                    run.send(head);
                }
            },
            context_.clock.now() + *delay);
        return;
    }
    --open_;
    end(failure.error.prefixed(fmt::format("'{}'", wanted_[head->index].key)));
}

// Ends the run with the first error. Objects that wait for a retry are dropped.
void HeadRun::end(Error error) {
    if (!error_) {
        error_ = std::move(error);
        for (const http::CallId call : calls_) {
            context_.client.cancel(call);
        }
    }
    finish_if_over();
}

void HeadRun::finish_if_over() {
    const bool is_done = error_ ? calls_.empty() : open_ == 0 && next_ == wanted_.size();
    if (is_done && !std::exchange(is_over_, true)) {
        over_.set_value();
    }
}

}  // namespace

Status ask_heads(
    const HttpLocation& location,
    ListingContext& context,
    const domain::Listing& wanted,
    domain::Listing& found,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    if (wanted.empty()) {
        return {};
    }
    return std::make_shared<HeadRun>(location, context, wanted, found)->wait(progress, stop);
}

}  // namespace stoker::sidecar
