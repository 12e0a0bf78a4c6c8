#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <map>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pthread.h>

#include "common/base/check.h"
#include "common/base/guarded.h"
#include "common/http/curl_call.h"
#include "common/http/http_client.h"

namespace stoker::http {

namespace {

constexpr std::size_t kSpareHandlesMax = 64;
constexpr Duration kPollMax = std::chrono::minutes{1};
constexpr int kCommandTurnsMax = 3;

struct StartCommand {
    CallId id;
    HttpRequest request;
    HttpSink sink;
};

using Task = std::function<void()>;

struct Inbox {
    std::vector<StartCommand> starts;
    std::vector<std::pair<TimePoint, Task>> tasks;
    bool stopping = false;

    [[nodiscard]] bool is_empty() const { return starts.empty() && tasks.empty() && !stopping; }
};

class CurlClient final : public HttpClient {
public:
    CurlClient(ClientOptions options, const Clock& clock)
        : options_(std::move(options)),
          clock_(&clock),
          multi_(curl_multi_init()) {
        STOKER_CHECK(multi_ != nullptr, "curl_multi_init() has no memory");
        curl_multi_setopt(
            multi_.get(),
            CURLMOPT_MAX_TOTAL_CONNECTIONS,
            static_cast<long>(options_.connections_max));
        curl_multi_setopt(
            multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(options_.idle_connections));
        curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
        thread_ = std::thread{[this] { run(); }};
    }

    ~CurlClient() override {
        STOKER_CHECK(!on_callback_thread(), "a callback destroys its own client");
        inbox_.lock()->stopping = true;
        curl_multi_wakeup(multi_.get());
        thread_.join();
    }

    CurlClient(const CurlClient&) = delete;
    CurlClient& operator=(const CurlClient&) = delete;

    CallId start(HttpRequest request, HttpSink sink) override {
        const CallId id{next_id_.fetch_add(1, std::memory_order_relaxed)};
        {
            auto inbox = inbox_.lock();
            if (!inbox->stopping) {
                inbox->starts.push_back({id, std::move(request), std::move(sink)});
                wake();
                return id;
            }
        }
        if (sink.on_done) {
            sink.on_done(fail(ErrorCode::kCancelled, "the HTTP client is closing"));
        }
        return id;
    }

    void cancel(CallId id) override {
        run_at({}, [this, id] { finish(id, fail(ErrorCode::kCancelled, "cancelled")); });
    }

    void run_at(TimePoint when, Task task) override {
        inbox_.lock()->tasks.emplace_back(when, std::move(task));
        wake();
    }

protected:
    [[nodiscard]] bool on_callback_thread() const override {
        return std::this_thread::get_id() == thread_.get_id();
    }

private:
    // Wakes the client's thread. That thread itself looks into the inbox before it waits.
    void wake() {
        if (!on_callback_thread()) {
            curl_multi_wakeup(multi_.get());
        }
    }

    void run();
    bool take_commands();
    void run_tasks(TimePoint now);
    void begin(StartCommand command);
    void launch(CurlCall& call, bool fresh_connection);
    void finish(CallId id, Status status);
    void finish_completed();
    void expire(TimePoint now);
    void cancel_everything();
    [[nodiscard]] int poll_ms() const;

    const ClientOptions options_;
    const Clock* clock_;
    CurlMulti multi_;
    std::atomic<std::uint64_t> next_id_{1};
    Guarded<Inbox> inbox_;

    // Only the client's thread uses the members below.
    std::unordered_map<CallId, std::unique_ptr<CurlCall>> calls_;
    std::vector<CurlEasy> spare_handles_;
    std::multimap<TimePoint, Task> tasks_;
    TimePoint next_deadline_ = TimePoint::max();  // at or before the earliest deadline of all calls
    std::thread thread_;
};

// Signals go to other threads; a closed TLS connection must not raise SIGPIPE on this one.
void block_all_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void CurlClient::run() {
    block_all_signals();
    pthread_setname_np(pthread_self(), "http-client");
    while (take_commands()) {
        int running = 0;
        const CURLMcode code = curl_multi_perform(multi_.get(), &running);
        STOKER_CHECK(code == CURLM_OK, curl_multi_strerror(code));
        finish_completed();
        expire(clock_->now());
        if (inbox_.lock()->is_empty()) {
            curl_multi_poll(multi_.get(), nullptr, 0, poll_ms(), nullptr);
        }
    }
    cancel_everything();
}

// Executes the inbox's commands and the due tasks, and then those that these have added: each turn
// of run() polls all connections, which is expensive. Repeats at most kCommandTurnsMax times,
// because the connections wait meanwhile. False: the client is closing.
bool CurlClient::take_commands() {
    for (int turn = 0; turn < kCommandTurnsMax; ++turn) {
        Inbox batch;
        {
            auto inbox = inbox_.lock();
            if (inbox->stopping) {
                return false;
            }
            if (turn > 0 && inbox->is_empty()) {
                return true;
            }
            std::swap(batch, *inbox);
        }
        for (StartCommand& command : batch.starts) {
            begin(std::move(command));
        }
        for (auto& task : batch.tasks) {
            tasks_.insert(std::move(task));
        }
        run_tasks(clock_->now());
    }
    return true;
}

void CurlClient::run_tasks(TimePoint now) {
    while (!tasks_.empty() && tasks_.begin()->first <= now) {
        const auto due = tasks_.extract(tasks_.begin());
        due.mapped()();
    }
}

void CurlClient::begin(StartCommand command) {
    auto call = std::make_unique<CurlCall>(
        command.id, std::move(command.request), std::move(command.sink), options_, *clock_);
    CurlCall& added = *call;
    calls_.emplace(command.id, std::move(call));
    launch(added, false);
}

void CurlClient::launch(CurlCall& call, bool fresh_connection) {
    CurlEasy easy{};
    if (spare_handles_.empty()) {
        easy.reset(curl_easy_init());
    } else {
        easy = std::move(spare_handles_.back());
        spare_handles_.pop_back();
    }
    if (Status prepared = call.prepare(std::move(easy), fresh_connection); !prepared) {
        finish(call.id(), std::move(prepared));
        return;
    }
    next_deadline_ = std::min(next_deadline_, call.deadline());
    const CURLMcode code = curl_multi_add_handle(multi_.get(), call.easy());
    STOKER_CHECK(code == CURLM_OK, curl_multi_strerror(code));
}

// Removes the call from the table first, so that its callbacks do not find it in the client.
void CurlClient::finish(CallId id, Status status) {
    auto node = calls_.extract(id);
    if (node.empty()) {
        return;
    }
    CurlCall& call = *node.mapped();
    if (call.easy() != nullptr) {
        curl_multi_remove_handle(multi_.get(), call.easy());
        if (spare_handles_.size() < kSpareHandlesMax) {
            CurlEasy easy = call.release_easy();
            curl_easy_reset(easy.get());
            spare_handles_.push_back(std::move(easy));
        }
    }
    call.finish(std::move(status));
}

void CurlClient::finish_completed() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        CURL* easy = message->easy_handle;
        const CURLcode code = message->data.result;  // `message` dies with the handle's removal
        char* owner = nullptr;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
        auto& call = *reinterpret_cast<CurlCall*>(owner);
        if (call.may_restart(code)) {
            curl_multi_remove_handle(multi_.get(), easy);
            spare_handles_.push_back(call.release_easy());
            launch(call, true);
            continue;
        }
        finish(call.id(), call.outcome(code));
    }
}

void CurlClient::expire(TimePoint now) {
    if (now < next_deadline_) {
        return;
    }
    std::vector<std::pair<CallId, Error>> expired;
    next_deadline_ = TimePoint::max();
    for (const auto& [id, call] : calls_) {
        if (now >= call->deadline()) {
            expired.emplace_back(id, call->expiry(now));
        } else {
            next_deadline_ = std::min(next_deadline_, call->deadline());
        }
    }
    for (auto& [id, error] : expired) {
        finish(id, fail(std::move(error)));
    }
}

int CurlClient::poll_ms() const {
    const TimePoint next =
        tasks_.empty() ? next_deadline_ : std::min(next_deadline_, tasks_.begin()->first);
    Duration wait = kPollMax;
    if (next != TimePoint::max()) {
        wait = std::clamp(next - clock_->now(), Duration::zero(), kPollMax);
    }
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

void CurlClient::cancel_everything() {
    const Error closing{ErrorCode::kCancelled, "the HTTP client is closing"};
    while (!calls_.empty()) {
        finish(calls_.begin()->first, fail(closing));
    }
    std::vector<StartCommand> never_started;
    std::swap(never_started, inbox_.lock()->starts);
    for (StartCommand& command : never_started) {
        if (command.sink.on_done) {
            command.sink.on_done(fail(closing));
        }
    }
    spare_handles_.clear();
}

}  // namespace

Result<std::unique_ptr<HttpClient>> make_curl_client(ClientOptions options, const Clock& clock) {
    STOKER_TRY(options, ready_options(std::move(options)));
    return std::unique_ptr<HttpClient>{std::make_unique<CurlClient>(std::move(options), clock)};
}

}  // namespace stoker::http
