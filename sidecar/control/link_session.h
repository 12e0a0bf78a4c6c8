#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/prng.h"
#include "proto/control/v1/control.pb.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/certificate_renewal.h"
#include "sidecar/control/control_messages.h"
#include "wire/control/orders.h"
#include "wire/control/report.h"

namespace stoker::sidecar {

// The next report. `awaits_pin`: trainers wait for a pin, so the report after it is due soon.
struct LinkReport : control::Report {
    bool awaits_pin = false;
};

// Called on the link's threads, each by one thread at a time; must return soon.
struct LinkCallbacks {
    std::function<LinkReport()> report;
    std::function<void(const control::Grant&)> grant;
    std::function<void(const control::Probe&)> probe{};      // may be empty: no measurement
    std::function<void(const control::RevisionPin&)> pin{};  // may be empty: no pins
    // Versions of one dataset's groups increase. May be empty: no peers.
    std::function<void(const control::PeerGroup&)> peers{};
    // The request for a peer certificate, PEM; always for the same key. May be empty: no peers.
    std::function<std::string()> peer_request{};
    std::function<void(const control::PeerCertificate&)> peer_certificate{};  // as peer_request
};

struct LinkOptions {
    Duration report_interval = std::chrono::seconds{2};
    Duration waiting_interval = std::chrono::milliseconds{500};  // while a pin is awaited
    Duration retry_min =
        std::chrono::milliseconds{200};  // grows by a quarter per attempt up to retry_max, jittered
    Duration retry_max = std::chrono::seconds{15};
    // The longest pause while no replica answers. The Service routes each attempt to any replica,
    // so a retry may reach the leader.
    Duration unreached_max = std::chrono::seconds{5};
    Duration farewell = std::chrono::seconds{2};  // time limit of the last report
    std::uint64_t seed = 0;                       // seeds the jitter
};

// The sidecar's side of the control protocol, without the stream itself: what to send and when, how
// to handle what arrives, and the pause before the next stream. One stream follows another:
//
//   begin(), send hello(), then next_message() again and again; on_message() for each message;
//   on_end() when the stream has ended or could not be opened
//
// Two threads may use it: one calls on_message(), the other the rest. on_message() never overlaps
// begin() or on_end().
class LinkSession {
public:
    LinkSession(
        const JobConfig& job,
        const std::vector<DatasetConfig>& datasets,
        LinkCallbacks callbacks,
        LinkOptions options);

    [[nodiscard]] const control::v1::SidecarMessage& hello() const { return hello_; }

    // Prepares for a new stream, on which the operator knows nothing yet.
    void begin();

    struct Outgoing {
        control::v1::SidecarMessage message;
        Duration pause{};  // until the next message
    };

    // A report, or first a request for a peer certificate if one is due.
    Outgoing next_message(TimePoint now);
    Outgoing next_report();

    // Handles a message. True: it is the first one of the stream, so the link is attached now.
    bool on_message(const control::v1::OperatorMessage& message, TimePoint now);

    // Ends the stream. Returns the pause before the next one. `unreached`: no replica answered.
    Duration on_end(bool unreached);

    // Whether the link is attached: the operator has answered on this stream. Thread-safe.
    [[nodiscard]] bool is_attached() const { return attached_.load(); }

private:
    void take_group(const control::PeerGroup& group);

    const control::v1::SidecarMessage hello_;
    const LinkCallbacks callbacks_;
    const LinkOptions options_;
    std::atomic<bool> attached_{false};
    Prng prng_;
    std::uint64_t sequence_ = 0;  // number of the last report; rises across streams
    ToldSketches told_;           // sketches sent on this stream
    Duration retry_;
    Guarded<CertificateRenewal> renewal_;                   // both threads use it
    Guarded<std::map<std::string, std::uint64_t>> groups_;  // group versions by dataset uid; shared
};

}  // namespace stoker::sidecar
