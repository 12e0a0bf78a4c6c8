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

// A recorded request.
struct SeenRequest {
    std::string method;
    std::string target;
    std::string authorization;
    std::string user_agent;
    std::string content_type;
    std::string body;
};

// The model behind real HTTP/1.1 on loopback, one thread per connection, with fault injection.
// Thread-safe.
class ApiServer {
public:
    ApiServer();
    ~ApiServer();
    ApiServer(const ApiServer&) = delete;
    ApiServer& operator=(const ApiServer&) = delete;

    [[nodiscard]] std::string url() const;

    // Runs `act` on the model under the lock; watches see the result.
    template <class Act>
    auto with_model(Act&& act) {
        auto state = state_.lock();
        return act(state->model);
    }

    // Handles a request without a connection; returns the API's answer.
    ModelAnswer request(const ModelRequest& request);
    // Shorthand for tests: POST, and a merge patch.
    ModelAnswer create(const ResourceKind& kind, const std::string& ns, const std::string& body);
    ModelAnswer merge(const ResourceKind& kind, const ObjectKey& key, const std::string& body);
    ModelAnswer erase(const ResourceKind& kind, const ObjectKey& key);

    void add_fault(Fault fault);
    void clear_faults();
    // While down, closes every connection on which a request arrives, and ends open watches.
    void set_down(bool down);
    // Ends all open watches, as a restart does; `reset`: by TCP reset.
    void cut_watches(bool reset = false);
    void set_bookmark_interval(Duration interval);
    // Accepts only this bearer token from now on; "": accepts any.
    void require_token(std::string token);

    // Answers GET .../pods/<pod>/proxy/<path> in the pod's place; `pod` is spelled as in the request,
    // "https:<name>:<port>". Like a real server it passes on all headers but "Authorization". Without
    // a handler such requests get the model's 404.
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
        std::uint64_t watch_epoch = 0;  // watches that began in an earlier epoch end
        bool reset_watches = false;
        Duration bookmark_interval = std::chrono::seconds{60};
    };

    class Reply;

    // False: close the connection.
    bool serve(const ScriptRequest& request, ScriptConnection& connection);
    bool answer(const ScriptRequest& request, const Fault& fault, ScriptConnection& connection);
    bool stream(WatchCursor cursor, const Fault& fault, ScriptConnection& connection);
    Fault take_fault(const ScriptRequest& request);
    // The pod's answer, if the request goes to a pod.
    std::optional<ModelAnswer> proxied(const ScriptRequest& request);

    mutable Guarded<State> state_;
    std::atomic<int> open_watches_{0};
    std::unique_ptr<HttpScriptServer> http_;  // last: its threads use the members above
};

}  // namespace stoker::test
