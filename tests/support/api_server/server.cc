#include "tests/support/api_server/server.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/base/prng.h"
#include "operator/kube/request.h"

namespace stoker::test {

namespace {

constexpr Duration kPollPause = std::chrono::milliseconds{2};

std::string header_of(const ScriptRequest& request, const std::string& name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? "" : found->second;
}

bool fits(const Fault& fault, std::string_view method, std::string_view target) {
    return fault.times != 0 && (fault.method.empty() || fault.method == method) &&
           target.find(fault.target_contains) != std::string_view::npos;
}

WallTime wall_now() {
    return SystemClock{}.wall_now();
}

}  // namespace

// Sends an answer's bytes as the fault says: whole, in pieces, or only the first few.
class ApiServer::Reply {
public:
    Reply(ScriptConnection& connection, const Fault& fault)
        : connection_(connection),
          left_(fault.cut_after),
          reset_(fault.reset) {
        if (fault.split_seed) {
            pieces_.emplace(*fault.split_seed);
        }
    }

    // False: the fault has cut the answer, so close the connection.
    bool send(std::string_view bytes) {
        const bool cut = left_ && bytes.size() >= *left_;
        if (cut) {
            bytes = bytes.substr(0, *left_);
        }
        if (left_) {
            *left_ -= bytes.size();
        }
        while (pieces_ && !bytes.empty()) {
            const auto size = std::min<std::size_t>(1 + pieces_->below(200), bytes.size());
            connection_.send(bytes.substr(0, size));
            bytes.remove_prefix(size);
            std::this_thread::yield();
        }
        connection_.send(bytes);
        if (cut && reset_) {
            connection_.reset();
        }
        return !cut;
    }

    bool send_chunk(std::string_view bytes) {
        return send(fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes));
    }

private:
    ScriptConnection& connection_;
    std::optional<std::size_t> left_;
    bool reset_;
    std::optional<Prng> pieces_;
};

ApiServer::ApiServer() {
    http_ = std::make_unique<HttpScriptServer>([this](ScriptConnection& connection) {
        while (const auto request = connection.read_request()) {
            if (!serve(*request, connection)) {
                return;
            }
        }
    });
}

ApiServer::~ApiServer() = default;

std::string ApiServer::url() const {
    return http_->url("");
}

ModelAnswer ApiServer::request(const ModelRequest& request) {
    return state_.lock()->model.handle(request, wall_now());
}

ModelAnswer ApiServer::create(
    const ResourceKind& kind, const std::string& ns, const std::string& body) {
    auto object = Json::parse(body)->value();
    object["apiVersion"] = web::json::value(kind.api_version());
    object["kind"] = web::json::value(kind.kind);
    const auto built = control::create_request(kind, ns, Json(std::move(object)));
    return request({"POST", built.target, built.content_type, built.body});
}

ModelAnswer ApiServer::merge(
    const ResourceKind& kind, const ObjectKey& key, const std::string& body) {
    const auto built =
        control::patch_request(kind, key, Json::parse(body).value(), control::PatchType::kMerge);
    return request({"PATCH", built.target, built.content_type, built.body});
}

ModelAnswer ApiServer::erase(const ResourceKind& kind, const ObjectKey& key) {
    const auto built = control::delete_request(kind, key, {});
    return request({"DELETE", built.target, built.content_type, built.body});
}

void ApiServer::add_fault(Fault fault) {
    state_.lock()->faults.push_back(std::move(fault));
}

void ApiServer::clear_faults() {
    state_.lock()->faults.clear();
}

void ApiServer::set_down(bool down) {
    auto state = state_.lock();
    state->down = down;
    state->watch_epoch++;
    state->reset_watches = false;
}

void ApiServer::cut_watches(bool reset) {
    auto state = state_.lock();
    state->watch_epoch++;
    state->reset_watches = reset;
}

void ApiServer::set_bookmark_interval(Duration interval) {
    state_.lock()->bookmark_interval = interval;
}

void ApiServer::require_token(std::string token) {
    state_.lock()->token = std::move(token);
}

void ApiServer::set_pod_proxy(PodProxy proxy) {
    state_.lock()->pod_proxy = std::move(proxy);
}

std::optional<ModelAnswer> ApiServer::proxied(const ScriptRequest& request) {
    constexpr std::string_view kPods = "/pods/";
    constexpr std::string_view kProxy = "/proxy";
    const std::size_t pods = request.target.find(kPods);
    const std::size_t proxy = request.target.find(kProxy, pods == std::string::npos ? 0 : pods);
    const PodProxy answer = state_.lock()->pod_proxy;
    if (!answer || pods == std::string::npos || proxy == std::string::npos) {
        return std::nullopt;
    }
    const std::size_t name = pods + kPods.size();
    PodHeaders headers = request.headers;
    headers.erase("authorization");
    return answer(
        request.target.substr(name, proxy - name),
        request.target.substr(proxy + kProxy.size()),
        headers);
}

std::vector<SeenRequest> ApiServer::seen() const {
    return state_.lock()->seen;
}

std::size_t ApiServer::count(std::string_view method, std::string_view target_part) const {
    auto state = state_.lock();
    return static_cast<std::size_t>(
        std::count_if(state->seen.begin(), state->seen.end(), [&](const SeenRequest& request) {
            return request.method == method &&
                   request.target.find(target_part) != std::string::npos;
        }));
}

Fault ApiServer::take_fault(const ScriptRequest& request) {
    auto state = state_.lock();
    for (Fault& fault : state->faults) {
        if (!fits(fault, request.method, request.target)) {
            continue;
        }
        if (fault.skip > 0) {
            fault.skip--;
            continue;
        }
        fault.times -= fault.times > 0 ? 1 : 0;
        return fault;
    }
    return {};
}

bool ApiServer::serve(const ScriptRequest& request, ScriptConnection& connection) {
    {
        auto state = state_.lock();
        if (state->down) {
            return false;
        }
        state->seen.push_back(
            {request.method,
             request.target,
             header_of(request, "authorization"),
             header_of(request, "user-agent"),
             header_of(request, "content-type"),
             request.body});
    }
    const Fault fault = take_fault(request);
    if (fault.delay > Duration::zero() && connection.wait_for_hang_up(fault.delay)) {
        return false;
    }
    return !fault.hang_up && answer(request, fault, connection);
}

bool ApiServer::answer(
    const ScriptRequest& request, const Fault& fault, ScriptConnection& connection) {
    ModelAnswer answer{fault.status, fault.body, std::nullopt};
    const auto from_pod = fault.status == 0 ? proxied(request) : std::nullopt;
    if (from_pod) {
        answer = *from_pod;
    } else if (fault.status == 0) {
        auto state = state_.lock();
        const bool let_in =
            state->token.empty() || header_of(request, "authorization") == "Bearer " + state->token;
        answer = let_in ? state->model.handle(
                              {request.method,
                               request.target,
                               header_of(request, "content-type"),
                               request.body},
                              wall_now())
                        : status_answer(401, "Unauthorized", "Unauthorized");
    }
    if (fault.lose_answer) {
        if (fault.reset) {
            connection.reset();
        }
        return false;
    }
    if (answer.watch) {
        return stream(*std::move(answer.watch), fault, connection);
    }
    const std::string retry =
        fault.retry_after.empty() ? "" : "Retry-After: " + fault.retry_after + "\r\n";
    return Reply(connection, fault)
        .send(fmt::format(
            "HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
            answer.status,
            retry,
            answer.body.size(),
            answer.body));
}

bool ApiServer::stream(WatchCursor cursor, const Fault& fault, ScriptConnection& connection) {
    struct Counted {
        std::atomic<int>& count;

        explicit Counted(std::atomic<int>& open)
            : count(open) {
            ++count;
        }

        ~Counted() { --count; }
    };

    const Counted counted(open_watches_);
    Reply reply(connection, fault);
    const std::uint64_t epoch = state_.lock()->watch_epoch;
    const TimePoint start = SystemClock{}.now();
    TimePoint bookmarked = start;
    if (!reply.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n")) {
        return false;
    }
    for (const std::string& line : fault.first_lines) {
        if (!reply.send_chunk(line)) {
            return false;
        }
    }
    while (!fault.half_open || !connection.wait_for_hang_up(std::chrono::seconds{1})) {
        if (fault.half_open) {
            continue;
        }
        WatchBatch batch;
        {
            auto state = state_.lock();
            if (state->watch_epoch != epoch) {
                if (state->reset_watches) {
                    connection.reset();
                }
                return false;
            }
            batch = state->model.poll(cursor);
            const TimePoint now = SystemClock{}.now();
            const bool over = now - start >= std::chrono::seconds{cursor.timeout_seconds};
            batch.ended = batch.ended || over;
            if (cursor.bookmarks && !fault.no_bookmarks &&
                (over || now - bookmarked >= state->bookmark_interval)) {
                batch.lines.push_back(state->model.bookmark(cursor));
                bookmarked = now;
            }
        }
        if (fault.rewrite) {
            fault.rewrite(batch.lines);
        }
        for (const std::string& line : batch.lines) {
            if (!reply.send_chunk(line)) {
                return false;
            }
        }
        if (batch.ended) {
            return reply.send("0\r\n\r\n");
        }
        if (connection.wait_for_hang_up(kPollPause)) {
            return false;
        }
    }
    return false;
}

}  // namespace stoker::test
