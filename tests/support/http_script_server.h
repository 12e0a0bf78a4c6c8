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

// A TCP server on loopback that runs a script for every connection: the bytes to send, and when to
// close. For tests of HTTP clients against faulty servers. Ignores failures to send (the client
// may be gone).
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

    // The next request with its Content-Length body; nullopt: the client closed the connection or the
    // server is stopping.
    std::optional<ScriptRequest> read_request();

    // False: the client closed the connection.
    bool send(std::string_view bytes);

    // "HTTP/1.1 <status> X" with a Content-Length.
    void reply(int status, std::string_view body, std::string_view extra_headers = "");

    // Waits until the client closes the connection. False: `limit` has passed.
    bool wait_for_hang_up(Duration limit);

    // Passes bytes on to a port of loopback and back, until one side closes, as a proxy does after
    // CONNECT.
    void tunnel_to(std::uint16_t port);

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

    // Runs `script` for every connection in its own thread, and closes the connection when it returns.
    // Listens on an IPv4 `address`; port 0: any free one. listening() returns whether that worked.
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

// Answers every request of a connection with the result of `answer`, until the client closes it.
HttpScriptServer::Script answering(
    std::function<void(const ScriptRequest&, ScriptConnection&)> answer);

// Answers each request, except the second one that the server receives: closes its connection
// without a response. Counts into `requests`, which must outlive the server.
HttpScriptServer::Script dies_on_second_request(std::atomic<int>& requests);

}  // namespace stoker::test
