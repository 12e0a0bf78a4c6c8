#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <sys/wait.h>

#include "common/base/check.h"
#include "tests/support/temp_folder.h"

// The real kubectl-stoker as a process, with a stand-in for kubectl.
namespace stoker::test {

struct Answer {
    int status = -1;
    std::string out;
    std::string err;
};

// Replaces kubectl: it forwards connections from a Unix socket to one address and has one
// namespace. The cluster tests use the real kubectl.
inline constexpr const char* kKubectl = R"(#!/usr/bin/python3
import socket, sys, threading
if "proxy" not in sys.argv:
    sys.exit(print("ml", end=""))
path = sys.argv[-1].partition("=")[2]
def copy(source, target):
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print("Starting to serve on", path, flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", PORT))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
)";

class Plugin {
public:
    explicit Plugin(const std::string& url) {
        std::string program = kKubectl;
        program.replace(program.find("PORT"), 4, url.substr(url.rfind(':') + 1));
        std::ofstream{folder_.path() + "/kubectl"} << program;
        std::filesystem::permissions(
            folder_.path() + "/kubectl", std::filesystem::perms::owner_all);
    }

    // `words` follow `kubectl stoker`; no word needs quotes.
    Answer run(const std::string& words) {
        const std::string err = folder_.path() + "/err";
        const std::string command = fmt::format(
            "PATH={0} XDG_RUNTIME_DIR={0} {1} {2} 2>{3}",
            folder_.path(),
            STOKER_PLUGIN_PROGRAM,
            words,
            err);
        Answer answer;
        FILE* pipe = popen(command.c_str(), "r");
        STOKER_CHECK(pipe != nullptr, "starting kubectl-stoker");
        char buffer[4096];
        for (std::size_t size = 0; (size = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
            answer.out.append(buffer, size);
        }
        const int status = pclose(pipe);
        answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
        std::ostringstream text;
        text << std::ifstream{err}.rdbuf();
        answer.err = text.str();
        return answer;
    }

    // Replaces the default stand-in for kubectl.
    void set_kubectl(const std::string& program) {
        std::ofstream{folder_.path() + "/kubectl"} << program;
    }

    void remove_kubectl() { std::filesystem::remove(folder_.path() + "/kubectl"); }

    // Number of socket folders left; a finished run must leave none.
    [[nodiscard]] std::ptrdiff_t folders_left() const {
        return std::ranges::count_if(
            std::filesystem::directory_iterator{folder_.path()},
            [](const auto& entry) { return entry.is_directory(); });
    }

private:
    TempFolder folder_;
};

}  // namespace stoker::test
