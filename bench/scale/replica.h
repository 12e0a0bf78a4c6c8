#pragma once

#include <cstdint>
#include <string>

#include "tests/support/certificates.h"
#include "tests/support/operator_process.h"

namespace stoker::bench {

// Processor time and memory of a process.
struct ProcessUse {
    double cpu_seconds = 0;
    double memory_mib = 0;       // resident now
    double memory_peak_mib = 0;  // resident at most
};

// One replica of the operator under test. The destructor kills it. Not thread-safe.
class Replica {
public:
    Replica(
        const std::string& program,
        const std::string& api_server,
        const std::string& name,
        const testing::TestCertificates& certificates);

    [[nodiscard]] ProcessUse use() const;

    // True once all its caches are filled.
    [[nodiscard]] bool is_ready() const;

    // The port in its log line with `message`; 0: it has not logged that line yet.
    [[nodiscard]] std::uint16_t port(const std::string& message) const {
        return process_.logged_port(message);
    }

    // SIGKILL.
    void kill() { process_.kill(); }

    [[nodiscard]] std::string metrics() const;

private:
    test::OperatorProcess process_;
};

}  // namespace stoker::bench
