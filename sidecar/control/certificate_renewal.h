#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"

namespace stoker::sidecar {

// When to ask the operator for a peer certificate: at first, when two thirds of the last one's life
// are over, and again if no answer comes. Pure. Not thread-safe.
class CertificateRenewal {
public:
    // Longer than the operator's interval between two requests of a stream.
    static constexpr Duration kAskAgain = std::chrono::seconds{70};

    // A new stream: the operator knows no request of the old one.
    void on_stream() {
        operator_signs_ = false;
        if (is_waiting_) {
            due_ = TimePoint::min();
        }
    }

    // The operator on this stream answers requests.
    void on_signer() { operator_signs_ = true; }

    void on_certificate(std::uint32_t renew_seconds, TimePoint now) {
        is_waiting_ = false;
        due_ = now + std::max<Duration>(std::chrono::seconds{renew_seconds}, kAskAgain);
    }

    // True: ask now.
    bool take(TimePoint now) {
        if (!operator_signs_ || now < due_) {
            return false;
        }
        is_waiting_ = true;
        due_ = now + kAskAgain;
        return true;
    }

private:
    bool operator_signs_ = false;
    bool is_waiting_ = false;
    TimePoint due_ = TimePoint::min();
};

}  // namespace stoker::sidecar
