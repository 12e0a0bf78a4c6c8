#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/guarded.h"
#include "tests/support/api_server/fault.h"
#include "tests/support/api_server/model.h"
#include "tests/support/http_script_server.h"

namespace stoker::test {

// What came in, for tests that ask how often and with what.
struct SeenRequest {
    std::string method;
    std::string target;
    std::string authorization;
    std::string user_agent;
    std::string content_type;
    std::string body;
};

// The model behind real HTTP/1.1 on loopback, one thread a connection, with faults on order.
// Thread-safe.
class ApiServer {
public:
    ApiServer();
    ~ApiServer();
    ApiServer(const ApiServer&) = delete;
    ApiServer& operator=(const ApiServer&) = delete;

    [[nodiscard]] std::string url() const;

    // Runs `act` on the model while nobody else does; watchers see the result.
    template <class Act>
    auto with_model(Act&& act) {
        auto state = state_.lock();
        return act(state->model);
    }

    // A request from nowhere in particular; returns what the API would answer.
    ModelAnswer request(const ModelRequest& request);
    // Shorthand for tests: POST, and a merge patch.
    ModelAnswer create(const ResourceKind& kind, const std::string& ns, const std::string& body);
    ModelAnswer merge(const ResourceKind& kind, const ObjectKey& key, const std::string& body);
    ModelAnswer erase(const ResourceKind& kind, const ObjectKey& key);

    void add_fault(Fault fault);
    void clear_faults();
    // Down: every connection is closed as soon as a request arrives on it, and open watches end.
    void set_down(bool down);
    // Ends every watch that is open now, as a restart does; `reset` by TCP reset.
    void cut_watches(bool reset = false);
    void set_bookmark_interval(Duration interval);
    // From now on only this bearer token is let in; "" lets everybody in.
    void require_token(std::string token);

    // Answers GET .../pods/<pod>/proxy/<path> as that pod would; `pod` is as it was written,
    // "https:<name>:<port>". As a real one it passes on all headers but "Authorization". Until then
    // such requests are the model's, who knows no such subresource.
    using PodHeaders = std::map<std::string, std::string>;  // names in lower case
    using PodProxy = std::function<ModelAnswer(
        const std::string& pod, const std::string& path, const PodHeaders& headers)>;
    void set_pod_proxy(PodProxy proxy);

    [[nodiscard]] std::vector<SeenRequest> seen() const;
    [[nodiscard]] std::size_t count(std::string_view method, std::string_view target_part) const;

    [[nodiscard]] int open_watches() const { return open_watches_; }

private:
    struct State {
        ApiServerModel model;
        std::vector<Fault> faults;
        std::vector<SeenRequest> seen;
        std::string token;
        PodProxy pod_proxy;
        bool down = false;
        std::uint64_t watch_epoch = 0;  // watches of an earlier one are to end
        bool reset_watches = false;
        Duration bookmark_interval = std::chrono::seconds{60};
    };

    class Reply;

    // False: the connection is to be closed.
    bool serve(const ScriptRequest& request, ScriptConnection& connection);
    bool answer(const ScriptRequest& request, const Fault& fault, ScriptConnection& connection);
    bool stream(WatchCursor cursor, const Fault& fault, ScriptConnection& connection);
    Fault take_fault(const ScriptRequest& request);
    // Answer of a pod, where the request goes to one.
    std::optional<ModelAnswer> proxied(const ScriptRequest& request);

    mutable Guarded<State> state_;
    std::atomic<int> open_watches_{0};
    std::unique_ptr<HttpScriptServer> http_;  // last: its threads use what stands above
};

}  // namespace stoker::test
