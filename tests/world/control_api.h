#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "operator/kube/transport.h"
#include "operator/kube/watch.h"
#include "tests/support/api_server/model.h"
#include "tests/world/schedule.h"

// The API server of the simulated world: tests/support/api_server's model in virtual time.
namespace stoker::world {

using control::Json;
using control::ObjectKey;
using control::ResourceKind;

class ControlWatch;

// Faults with which the server treats the operator's requests. The world changes them.
struct ApiFaults {
    bool is_down = false;
    double refused = 0;    // share of requests that get 500 or 503 and are not executed
    double lost = 0;       // share of requests that are executed without an answer
    double conflicts = 0;  // share of writes that get 409 and are not executed
    Duration watch_lag = std::chrono::milliseconds{50};  // longest delay of a watch's events
    bool lists_are_stale = false;  // lists that accept any state get the state at the fault's begin
};

// A write of the operator, before it is executed.
struct ApiWrite {
    const control::ApiRequest& request;
    const std::string& process;
};

// Not thread-safe. Outlives all watches.
class ControlApi {
public:
    explicit ControlApi(Schedule& schedule)
        : schedule_(schedule) {}

    ControlApi(const ControlApi&) = delete;
    ControlApi& operator=(const ControlApi&) = delete;

    // Requests of users and of Kubernetes' own controllers, which no fault affects. Errors are
    // ignored unless the caller checks the answer.
    test::ModelAnswer create(
        const ResourceKind& kind, const std::string& ns, const std::string& body);
    test::ModelAnswer merge(
        const ResourceKind& kind,
        const ObjectKey& key,
        const std::string& patch,
        std::string_view subresource = {});
    test::ModelAnswer remove(const ResourceKind& kind, const ObjectKey& key);

    [[nodiscard]] std::optional<Json> find(const ResourceKind& kind, const ObjectKey& key) const {
        return model_.find(kind, key);
    }

    [[nodiscard]] std::map<ObjectKey, Json> all(const ResourceKind& kind) const {
        return model_.all(kind);
    }

    // A request of the operator process of this name.
    Result<control::ApiResponse> call(
        const control::ApiRequest& request, const std::string& process);

    // Result of opening a watch: its cursor, or the refusal.
    struct Opened {
        std::optional<test::WatchCursor> cursor;
        Result<control::ApiResponse> refusal;
    };

    Opened open(const control::ApiRequest& request);

    // A watch without delay and faults. `with_state`: it begins with the present objects.
    test::WatchCursor follow(const ResourceKind& kind, bool with_state = true);

    [[nodiscard]] test::WatchBatch poll(test::WatchCursor& cursor) const {
        return model_.poll(cursor);
    }

    [[nodiscard]] std::string bookmark(const test::WatchCursor& cursor) const {
        return model_.bookmark(cursor);
    }

    void cut_watches();
    // Forgets the history of every kind: older watches get 410.
    void compact();
    void begin_stale_lists();

    ApiFaults faults;
    std::function<void(const ApiWrite& write)> on_operator_write;

private:
    friend class ControlWatch;

    test::ModelAnswer execute(const test::ModelRequest& request);
    std::optional<Result<control::ApiResponse>> fault_for(const control::ApiRequest& request);

    Schedule& schedule_;
    test::ApiServerModel model_;
    std::optional<test::ApiServerModel> stale_;
    std::vector<ControlWatch*> watches_;  // in the order of their starts
};

// Carries out the steps of one of the operator's watch loops, as RestTransport does.
class ControlWatch : public std::enable_shared_from_this<ControlWatch> {
public:
    // `api` and `loop` must outlive it.
    ControlWatch(
        Schedule& schedule, ControlApi& api, control::WatchLoop& loop, std::string process);
    ~ControlWatch();
    ControlWatch(const ControlWatch&) = delete;
    ControlWatch& operator=(const ControlWatch&) = delete;

    void go_on();

private:
    friend class ControlApi;

    void in(Duration delay, void (ControlWatch::*step)());
    void open(const control::SendRequest& send);
    void answer(Result<control::ApiResponse> response);
    void take_answer();
    void wake();
    void poll();
    void add_bookmark();
    void end();
    [[nodiscard]] Duration latency();

    Schedule& schedule_;
    ControlApi& api_;
    control::WatchLoop& loop_;
    std::string process_;
    std::optional<test::WatchCursor> cursor_;
    std::uint64_t stream_ = 0;  // events of older streams are dropped
    bool is_polling_ = false;
    bool wants_bookmark_ = false;
    std::optional<Result<control::ApiResponse>> answer_;
};

// The operator's transport: answers at once in virtual time. A dead process sends nothing.
class ControlTransport final : public control::ApiTransport {
public:
    ControlTransport(ControlApi& api, std::string process)
        : api_(api),
          process_(std::move(process)) {}

    Result<control::ApiResponse> call(
        const control::ApiRequest& request, Duration time_limit, std::stop_token stop) override;
    Result<control::ApiStreamEnd> stream(
        const control::ApiRequest& request,
        Duration time_limit,
        const control::ApiStreamSink& sink,
        std::stop_token stop) override;

    // Dies before it sends its request number `count` from now; 0: the next one.
    void die_after(std::uint64_t count) { calls_left_ = count; }

    [[nodiscard]] bool is_dead() const { return calls_left_ == 0; }

private:
    ControlApi& api_;
    std::string process_;
    std::optional<std::uint64_t> calls_left_;
};

}  // namespace stoker::world
