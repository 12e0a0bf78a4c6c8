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

// The datasets that each TrainingJob's sidecars may hear of, by uid.
using GrantReaders = std::map<ObjectKey, std::set<std::string>>;

using SessionId = Strong<std::uint64_t, struct SessionIdTag>;

// How the registry reaches one attached sidecar. All are called with the registry's lock held:
// they must neither block nor call the registry. They may be called after detach() was entered on
// another thread, never after it returned.
struct SidecarLink {
    std::function<void(const Orders& orders)> send;
    std::function<void()> close;  // another stream speaks for this pod now
};

struct RegistryCounts {
    std::size_t attached = 0;           // now
    std::size_t known = 0;              // pods with a last word, attached or not
    std::uint64_t reports = 0;          // accepted
    std::uint64_t reports_stale = 0;    // replayed or out of order
    std::uint64_t reports_refused = 0;  // impossible
};

// The last word of every sidecar, and the way grants go to them. One entry a pod: a new stream of
// the same pod replaces the old one, whose numbers stay until its first own report. Nothing here is
// kept over a restart: sidecars attach again and repeat everything. Thread-safe.
class SidecarRegistry {
public:
    struct Options {
        std::size_t sidecar_count_max = 20000;
        Duration forget_after =
            std::chrono::minutes{10};  // after the last sign of a detached sidecar
    };

    // Something about this TrainingJob is new. Called on the thread of the caller of attach(),
    // report() or detach(), without a lock.
    using OnChange = std::function<void(const ObjectKey& job)>;

    SidecarRegistry(Options options, OnChange on_change);

    // A sidecar whose identity has been checked. Grants that are known for its mounts are sent at
    // once. kInvalidArgument: validate_hello(). kResourceExhausted: too many sidecars.
    Result<SessionId> attach(const Hello& hello, SidecarLink link, Moment at);

    // kAlreadyExists: not newer than the last one, ignored. kInvalidArgument: impossible, ignored.
    // kGone: another session speaks for this pod.
    Status report(SessionId session, Report report, Moment at);

    // Harmless for a session that was replaced.
    void detach(SessionId session, Moment at);

    // Makes `grants` the truth. Each sidecar gets those for its node and mounts that its job may
    // hear of and that are new, changed, or a third of their validity old. One entry for a (node,
    // dataset) pair; of two the last counts. A grant that is gone from the list is not recalled: it
    // runs out.
    void publish(const std::vector<Grant>& grants, const GrantReaders& readers, TimePoint now);

    // Asks every sidecar of these jobs for its measurement, once for each id; those that attach
    // later are asked, too. A job that is not in the list is asked no more.
    void ask(const std::map<ObjectKey, Probe>& probes);

    // The revisions that this job's attempt reads, instead of what was pinned before; each of its
    // pods' sidecars is told once, and again when they change. Nothing to pin: forgets them.
    void pin(const ObjectKey& job, AttemptPins pins);

    // Forgets detached sidecars that were last heard of longer ago than forget_after.
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
        bool reported = false;                  // `last` is of this session, not of the one before
        std::map<std::string, SentGrant> sent;  // by dataset uid
        std::uint64_t probe_sent = 0;           // its id
        std::vector<RevisionPin> pins_sent;
        TimePoint detached_at{};  // once last.attached is false
    };

    struct State {
        std::map<ObjectKey, Sidecar> sidecars;  // by namespace and pod
        std::map<SessionId, ObjectKey> pods;
        std::map<std::pair<std::string, std::string>, Grant> grants;  // by node and dataset uid
        GrantReaders readers;
        std::map<ObjectKey, Probe> probes;      // by job
        std::map<ObjectKey, AttemptPins> pins;  // by job
        std::uint64_t next_session = 1;
        RegistryCounts counts;
    };

    // Ends the session before this one of a pod.
    static void replace(State& state, Sidecar& old, Sidecar& next);
    // What the sidecar has not been told yet, as if it were told now.
    static std::vector<Grant> take_grants(const State& state, Sidecar& sidecar, TimePoint now);
    static std::optional<Probe> take_probe(const State& state, Sidecar& sidecar);
    static std::vector<RevisionPin> take_pins(const State& state, Sidecar& sidecar);
    static void send(const Sidecar& sidecar, const Orders& orders);
    static ObjectKey job_of(const Hello& hello);
    void changed(const ObjectKey& job) const;

    Options options_;
    OnChange on_change_;
    Guarded<State> state_;
};

}  // namespace stoker::control
