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

// Keeps the served certificate fresh: asks `load` for it again and again. When that fails, the old
// one stays. Thread-safe; run() once.
class CertificateKeeper {
public:
    // Blocks; called on the thread of run() only.
    using Load = std::function<Result<ServedCertificate>()>;
    // Called on the thread of run() after each change, the first one included.
    using OnChange = std::function<void(const ServedCertificate& now)>;

    struct Options {
        Duration interval = std::chrono::seconds{30};
        Duration retry = std::chrono::seconds{1};  // as long as there is none at all
    };

    CertificateKeeper(Load load, const Clock& clock, Options options);

    // Before run().
    void add_listener(OnChange listener) { listeners_.push_back(std::move(listener)); }

    // Until a stop is requested.
    void run(const std::stop_token& stop);

    // One look; what run() does each time. Errors are those of `load`.
    Status look();

    [[nodiscard]] bool has_one() const { return has_one_; }

    // Null until has_one().
    [[nodiscard]] ServedCertificatePtr current() const { return *current_.lock(); }

    // The end of the current leaf; the epoch until has_one().
    [[nodiscard]] WallTime expires() const { return WallTime{Duration{expires_}}; }

private:
    Load load_;
    const Clock& clock_;
    Options options_;
    std::vector<OnChange> listeners_;
    std::string told_;  // the last error in the log; only run() uses it
    mutable Guarded<ServedCertificatePtr> current_;
    std::atomic<Duration::rep> expires_{0};
    std::atomic<bool> has_one_{false};
};

}  // namespace stoker::control
