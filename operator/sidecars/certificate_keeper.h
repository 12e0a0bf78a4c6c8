#pragma once

#include <atomic>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "operator/sidecars/served_certificate.h"

namespace stoker::control {

// Keeps the served certificate fresh: calls `load` periodically. After a failed load the old one
// stays. Thread-safe; run() once.
class CertificateKeeper {
public:
    // Blocks; called on the thread of run() only.
    using Load = std::function<Result<ServedCertificate>()>;
    // Called on the thread of run() after each change, including the first load.
    using OnChange = std::function<void(const ServedCertificate& now)>;

    struct Options {
        Duration interval = std::chrono::seconds{30};
        Duration retry = std::chrono::seconds{1};  // interval while there is no certificate yet
        std::string purpose = "the control link";  // for the log
    };

    CertificateKeeper(Load load, const Clock& clock, Options options);

    // Call it before run().
    void add_listener(OnChange listener) { listeners_.push_back(std::move(listener)); }

    // Runs until a stop is requested.
    void run(const std::stop_token& stop);

    // Loads once; run() calls it periodically. Errors are those of `load`.
    Status look();

    [[nodiscard]] bool has_one() const { return has_one_; }

    // Null until the first load has succeeded.
    [[nodiscard]] ServedCertificatePtr current() const { return *current_.lock(); }

    // End of the current leaf's validity; the epoch before the first load.
    [[nodiscard]] WallTime expires() const { return WallTime{Duration{expires_}}; }

private:
    Load load_;
    const Clock& clock_;
    Options options_;
    std::vector<OnChange> listeners_;
    std::string told_;  // the last logged error; only run() uses it
    mutable Guarded<ServedCertificatePtr> current_;
    std::atomic<Duration::rep> expires_{0};
    std::atomic<bool> has_one_{false};
};

}  // namespace stoker::control
