#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/guarded.h"
#include "common/base/result.h"
#include "common/base/strong.h"
#include "operator/api/meta.h"
#include "operator/api/sidecar_report.h"
#include "operator/core/spec/moment.h"
#include "operator/sidecars/report_rules.h"

namespace stoker::control {

// The uids of the datasets whose grants each pod's sidecar may receive.
using GrantReaders = std::map<ObjectKey, std::set<std::string>>;

using SessionId = Strong<std::uint64_t, struct SessionIdTag>;

// Callbacks to one attached sidecar. All are called with the registry's lock held: they must
// neither block nor call the registry. They may be called after detach() was entered on another
// thread, never after it returned.
struct SidecarLink {
    std::function<void(const Orders& orders)> send;
    std::function<void()> close;  // called when another stream replaces this one for the pod
};

// A sidecar's request for a peer certificate that waits for its answer.
struct WaitingPeerRequest {
    SessionId session;
    ObjectKey pod;  // proven by its token
    PeerRequest request;
};

struct RegistryCounts {
    std::size_t attached = 0;             // now
    std::size_t known = 0;                // pods with a last report, attached or not
    std::uint64_t reports = 0;            // accepted
    std::uint64_t reports_stale = 0;      // replayed or out of order
    std::uint64_t reports_refused = 0;    // out of range
    std::uint64_t peer_certificates = 0;  // sent
};

// The last report of every sidecar, and the channel for its grants. One entry per pod: a new stream
// of the same pod replaces the old one, whose numbers stay until the new stream's first report.
// Nothing survives a restart: sidecars attach again and repeat everything. Thread-safe.
class SidecarRegistry {
public:
    struct Options {
        std::size_t sidecar_count_max = 20000;
        Duration forget_after =
            std::chrono::minutes{10};  // after the last contact with a detached sidecar
    };

    // The state of this TrainingJob changed. `news`: by more than the numbers of a report
    // (is_news()). Called on the thread of the caller of attach(), report() or detach(), without a
    // lock.
    using OnChange = std::function<void(const ObjectKey& job, bool news)>;

    SidecarRegistry(Options options, OnChange on_change);

    // Adds a sidecar whose identity has been checked. Orders that it may receive are sent at once;
    // grants wait for its first report.
    // kInvalidArgument: validate_hello(). kResourceExhausted: too many sidecars.
    Result<SessionId> attach(const Hello& hello, SidecarLink link, Moment at);

    // A sidecar that begins to lead a dataset gets its known grant at once.
    // kAlreadyExists: not newer than the last one, ignored. kInvalidArgument: numbers out of
    // range, ignored. kGone: another session has replaced this one.
    Status report(SessionId session, Report report, Moment at);

    // Ends the session; does nothing if it was replaced.
    void detach(SessionId session, Moment at);

    // Replaces all grants. Each sidecar gets those for its node and the mounts that it leads
    // (according to its session's last report), that its pod may receive, and that are new, changed,
    // or a third of their validity old. A follower gets none: only a leader confirms a grant, so
    // GrantBook would not count an old grant that reaches a follower just before it leads. One
    // entry per (node, dataset) pair; of two the last counts. A grant that is missing from the list
    // is not recalled: it expires.
    void publish(const std::vector<Grant>& grants, const GrantReaders& readers, TimePoint now);

    // Requests a measurement from every sidecar of these jobs, once per id, including sidecars that
    // attach later. A job that is missing from the list gets no more requests.
    void ask(const std::map<ObjectKey, Probe>& probes);

    // Replaces the pinned revisions of this job's attempt; each of its pods' sidecars gets them
    // once, and again when they change. No pins: forgets them.
    void pin(const ObjectKey& job, AttemptPins pins);

    // Replaces the groups of peers, by dataset uid. Each sidecar that publish() lets receive the
    // dataset's grants gets its group when it is new or changed, also one that attaches later.
    void publish_peers(std::map<std::string, PeerGroup> groups);

    // The dataset's group in the last publish_peers().
    [[nodiscard]] std::optional<PeerGroup> peer_group(const std::string& dataset_uid);

    // Keeps the request for waiting_peer_requests(). kResourceExhausted: the stream's last one came
    // less than kPeerRequestInterval ago. kInvalidArgument: it is too long. kGone: as report().
    Status request_peer_certificate(SessionId session, PeerRequest request, Moment at);

    static constexpr Duration kPeerRequestInterval = std::chrono::minutes{1};

    // The requests without an answer. Each is returned until answer_peer_request() or the end of
    // its stream.
    [[nodiscard]] std::vector<WaitingPeerRequest> waiting_peer_requests();

    // Sends the certificate; nullopt: drops the request. Harmless if the session has ended.
    void answer_peer_request(SessionId session, const std::optional<PeerCertificate>& certificate);

    // Forgets detached sidecars whose last contact is older than forget_after.
    void forget_silent(TimePoint now);

    // Ordered by rank, then pod.
    [[nodiscard]] std::vector<SidecarReport> of_job(const ObjectKey& job);
    // Ordered by namespace and pod.
    [[nodiscard]] std::vector<SidecarReport> all();

    [[nodiscard]] RegistryCounts counts();

private:
    struct SentGrant {
        Grant grant;
        TimePoint at{};
    };

    struct Sidecar {
        SessionId session;
        SidecarLink link;
        SidecarReport last;
        bool reported = false;                  // `last` is from this session
        std::map<std::string, SentGrant> sent;  // since it began to lead, by dataset uid
        std::uint64_t probe_sent = 0;           // id of the last probe sent
        std::vector<RevisionPin> pins_sent;
        std::map<std::string, std::uint64_t> peers_sent;  // versions by dataset uid
        std::optional<PeerRequest> peer_request;          // waits for its answer
        std::optional<TimePoint> peer_requested_at{};     // the last one of this stream
        TimePoint detached_at{};                          // once last.attached is false
    };

    struct State {
        std::map<ObjectKey, Sidecar> sidecars;             // by namespace and pod
        std::map<ObjectKey, std::set<ObjectKey>> pods_of;  // the keys of sidecars, by job
        std::map<SessionId, ObjectKey> pods;
        std::map<std::pair<std::string, std::string>, Grant> grants;  // by node and dataset uid
        GrantReaders readers;
        std::map<ObjectKey, Probe> probes;       // by job
        std::map<ObjectKey, AttemptPins> pins;   // by job
        std::map<std::string, PeerGroup> peers;  // by dataset uid
        std::uint64_t next_session = 1;
        RegistryCounts counts;
    };

    static void forget_pod(State& state, const ObjectKey& pod, const Sidecar& sidecar);
    // nullptr: another session has replaced this one for the pod, or it has ended.
    static Sidecar* find(State& state, SessionId session);
    // Ends the previous session of a pod.
    static void replace(State& state, Sidecar& old, Sidecar& next);
    // The grants that the sidecar lacks; marks them as sent.
    static std::vector<Grant> take_grants(const State& state, Sidecar& sidecar, TimePoint now);
    static std::optional<Probe> take_probe(const State& state, Sidecar& sidecar);
    static std::vector<RevisionPin> take_pins(const State& state, Sidecar& sidecar);
    static std::vector<PeerGroup> take_peers(const State& state, Sidecar& sidecar);
    // The uids of the datasets that the sidecar leads, according to its session's last report.
    static std::set<std::string> led_datasets(const Sidecar& sidecar);
    // The uids of the mounts whose orders the sidecar may receive.
    static std::set<std::string> readable_mounts(const State& state, const Sidecar& sidecar);
    static void send(const Sidecar& sidecar, const Orders& orders);
    static ObjectKey job_of(const Hello& hello);
    void changed(const ObjectKey& job, bool news = true) const;

    Options options_;
    OnChange on_change_;
    Guarded<State> state_;
};

}  // namespace stoker::control
