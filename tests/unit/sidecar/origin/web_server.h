#pragma once

#include <charconv>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/http/http_date.h"
#include "tests/support/http_script_server.h"

// A web server on loopback with files in memory; switches choose how it behaves.
namespace stoker::test {

struct WebFile {
    std::string bytes;
    std::string etag = "";  // the header's value; empty: none
    WallTime modified{std::chrono::seconds{1'700'000'000}};
};

// Faults and omissions of the server.
struct WebManners {
    bool has_ranges = true;
    bool heeds_conditions = true;
    bool has_times = true;
    WallTime now{std::chrono::seconds{1'800'000'000}};  // in the Date header
    std::string more_headers{};                         // "Name: value\r\n"
};

class WebServer {
public:
    // If set, may answer in place of the server; false: the server answers.
    using Fault = std::function<bool(const ScriptRequest&, ScriptConnection&)>;

    // The served folder.
    [[nodiscard]] std::string uri() const { return server_.url("/set"); }

    void put(const std::string& key, WebFile file) {
        const std::scoped_lock lock{mutex_};
        files_["/set/" + key] = std::move(file);
    }

    void set_fault(Fault fault) {
        const std::scoped_lock lock{mutex_};
        fault_ = std::move(fault);
    }

    void change(const std::function<void(WebManners&)>& how) {
        const std::scoped_lock lock{mutex_};
        how(manners_);
    }

    // Method and target of each request so far.
    [[nodiscard]] std::vector<std::string> requests() const {
        const std::scoped_lock lock{mutex_};
        return requests_;
    }

private:
    void answer(const ScriptRequest& request, ScriptConnection& to) {
        std::optional<WebFile> file;
        Fault fault;
        WebManners manners;
        {
            const std::scoped_lock lock{mutex_};
            requests_.push_back(request.method + " " + request.target);
            const auto found = files_.find(request.target);
            file = found == files_.end() ? std::nullopt : std::optional{found->second};
            fault = fault_;
            manners = manners_;
        }
        if (fault && fault(request, to)) {
            return;
        }
        if (!file) {
            reply(request, to, 404, "no such file", "");
        } else if (manners.heeds_conditions && !holds(request, *file)) {
            reply(request, to, 412, "", "");
        } else {
            send(request, to, *file, manners);
        }
    }

    static bool holds(const ScriptRequest& request, const WebFile& file) {
        const auto match = request.headers.find("if-match");
        const auto since = request.headers.find("if-unmodified-since");
        return (match == request.headers.end() || match->second == file.etag) &&
               (since == request.headers.end() ||
                *http::parse_http_date(since->second) >= file.modified);
    }

    static void send(
        const ScriptRequest& request,
        ScriptConnection& to,
        const WebFile& file,
        const WebManners& manners) {
        std::string headers = manners.more_headers;
        headers += file.etag.empty() ? "" : "ETag: " + file.etag + "\r\n";
        headers += "Date: " + http::format_http_date(manners.now) + "\r\n";
        headers += manners.has_times
                       ? "Last-Modified: " + http::format_http_date(file.modified) + "\r\n"
                       : "";
        const auto range = request.headers.find("range");
        if (!manners.has_ranges || range == request.headers.end()) {
            reply(request, to, 200, file.bytes, headers);
            return;
        }
        std::size_t first = 0;
        std::size_t last = 0;
        const std::string& text = range->second;  // "bytes=5-9"
        const auto dash = text.find('-');
        std::from_chars(text.data() + 6, text.data() + dash, first);
        std::from_chars(text.data() + dash + 1, text.data() + text.size(), last);
        headers += "Content-Range: bytes " + text.substr(6) + "/" +
                   std::to_string(file.bytes.size()) + "\r\n";
        reply(request, to, 206, file.bytes.substr(first, last - first + 1), headers);
    }

    static void reply(
        const ScriptRequest& request,
        ScriptConnection& to,
        int status,
        const std::string& body,
        const std::string& headers) {
        if (request.method != "HEAD") {
            to.reply(status, body, headers);
            return;
        }
        to.send(
            "HTTP/1.1 " + std::to_string(status) +
            " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers + "\r\n");
    }

    mutable std::mutex mutex_;
    std::map<std::string, WebFile> files_;  // by the request's target; guarded, as all below
    Fault fault_;
    WebManners manners_;
    std::vector<std::string> requests_;
    HttpScriptServer server_{answering(
        [this](const ScriptRequest& request, ScriptConnection& to) { answer(request, to); })};
};

}  // namespace stoker::test
