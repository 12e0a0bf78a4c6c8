#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/unique_fd.h"

// A TCP server on loopback whose every connection runs a script: what it says, byte by byte, and
// when it hangs up. For tests of HTTP clients against servers that misbehave. Test code; failures
// to send are ignored (the client may be gone).
namespace stoker::test {

struct ScriptRequest {
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
    std::string raw_head;
};

class ScriptConnection {
public:
    explicit ScriptConnection(int fd)
        : fd_(fd) {}

    // The next request with its Content-Length body; nullopt when the client hung up or the server
    // is closing.
    std::optional<ScriptRequest> read_request();

    // False: the client has hung up.
    bool send(std::string_view bytes);

    // "HTTP/1.1 <status> X" with a Content-Length.
    void reply(int status, std::string_view body, std::string_view extra_headers = "");

    // Waits until the client hangs up. False: it still has not after `limit`.
    bool wait_for_hang_up(Duration limit);

    // Ends the connection with a TCP reset instead of a clean close.
    void reset();

    // Ends the connection after this answer.
    void hang_up();

private:
    int fd_;
    std::string buffered_;
};

class HttpScriptServer {
public:
    using Script = std::function<void(ScriptConnection&)>;

    // Every accepted connection runs `script` on a thread of its own and is closed when it returns.
    // Listens on an IPv4 `address`; port 0: any free one. listening() tells whether that worked.
    explicit HttpScriptServer(
        Script script, const std::string& address = "127.0.0.1", std::uint16_t port = 0);
    ~HttpScriptServer();
    HttpScriptServer(const HttpScriptServer&) = delete;
    HttpScriptServer& operator=(const HttpScriptServer&) = delete;

    [[nodiscard]] bool listening() const { return port_ != 0; }

    [[nodiscard]] std::uint16_t port() const { return port_; }

    [[nodiscard]] std::string url(std::string_view path = "/") const;

    [[nodiscard]] int connection_count() const { return connection_count_; }

private:
    struct Session {
        UniqueFd fd;
        std::thread thread;
    };

    void accept_loop();

    Script script_;
    UniqueFd listener_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stopping_{false};
    std::atomic<int> connection_count_{0};
    Guarded<std::list<Session>> sessions_;
    std::thread acceptor_;
};

// Answers every request of a connection with what `answer` says, until the client hangs up.
HttpScriptServer::Script answering(
    std::function<void(const ScriptRequest&, ScriptConnection&)> answer);

}  // namespace stoker::test
