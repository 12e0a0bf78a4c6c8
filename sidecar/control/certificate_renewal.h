#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/clock.h"

namespace stoker::sidecar {

// When to ask the operator for a peer certificate: at the start, again when two thirds of the
// current certificate's lifetime have passed, and again if no answer comes. Pure. Not thread-safe.
class CertificateRenewal {
public:
    // The operator signs at most one certificate a minute per connection; this pause is longer.
    static constexpr Duration kAskAgain = std::chrono::seconds{70};

    // Call when a new stream opens: the operator does not know the requests on the old one.
    void on_stream() {
        operator_signs_ = false;
        if (is_waiting_) {
            due_ = TimePoint::min();
        }
    }

    // Call when the operator has said on this stream that it signs certificates.
    void on_signer() { operator_signs_ = true; }

    void on_certificate(std::uint32_t renew_seconds, TimePoint now) {
        is_waiting_ = false;
        due_ = now + std::max<Duration>(std::chrono::seconds{renew_seconds}, kAskAgain);
    }

    // Whether to request a certificate now.
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
