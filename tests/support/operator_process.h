#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tests/support/certificates.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {

// A stoker-operator as a process outside a cluster, with a folder for its settings, certificates and
// log. The destructor kills it with SIGKILL. Not thread-safe.
class OperatorProcess {
public:
    struct Options {
        std::string program;     // its path
        std::string api_server;  // URL
        std::string pod_name;
        std::vector<std::string> flags{};  // further flags
        // The settings; the certificates are in FOLDER/tls.
        std::function<std::string(const std::string& folder)> settings;
    };

    OperatorProcess(const Options& options, const testing::TestCertificates& certificates);

    ~OperatorProcess() { kill(); }

    OperatorProcess(const OperatorProcess&) = delete;
    OperatorProcess& operator=(const OperatorProcess&) = delete;

    // The process's log so far, one JSON object per line.
    [[nodiscard]] std::string log() const;

    // The port in the log line with this message; 0: no such line yet.
    [[nodiscard]] std::uint16_t logged_port(const std::string& message) const;

    // -1: the process has ended, and take_exit() or kill() has seen it.
    [[nodiscard]] pid_t pid() const { return pid_; }

    void signal(int number) const;

    // If the process has ended: its exit code, or 128 + the signal. nullopt: it runs.
    std::optional<int> take_exit();

    // SIGKILL, and waits for the end.
    void kill();

private:
    void write_files(const Options& options, const testing::TestCertificates& certificates);
    void start(const Options& options);

    TempFolder folder_;
    pid_t pid_ = -1;
};

}  // namespace stoker::test
