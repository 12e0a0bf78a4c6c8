#include "operator/sidecars/sidecar_registry.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace stoker::control {

namespace {

bool is_due(const Grant& grant, TimePoint sent_at, TimePoint now) {
    return now - sent_at >= std::chrono::seconds{grant.valid_seconds} / 3;
}

}  // namespace

SidecarRegistry::SidecarRegistry(Options options, OnChange on_change)
    : options_(options),
      on_change_(std::move(on_change)) {}

Result<SessionId> SidecarRegistry::attach(const Hello& hello, SidecarLink link, Moment at) {
    STOKER_TRY_VOID(validate_hello(hello));
    const ObjectKey pod{hello.namespace_name, hello.pod};
    SessionId session;
    {
        auto state = state_.lock();
        const auto found = state->sidecars.find(pod);
        if (found == state->sidecars.end() &&
            state->sidecars.size() >= options_.sidecar_count_max) {
            return fail(
                ErrorCode::kResourceExhausted,
                fmt::format("more than {} sidecars", options_.sidecar_count_max));
        }
        session = SessionId{state->next_session++};
        Sidecar next;
        next.session = session;
        next.link = std::move(link);
        next.last = {hello, {}, at.steady, at.wall, true};
        if (found != state->sidecars.end()) {
            replace(*state, found->second, next);
        }
        state->pods[session] = pod;
        Sidecar& sidecar = state->sidecars[pod] = std::move(next);
        send(
            sidecar,
            {take_grants(*state, sidecar, at.steady),
             take_probe(*state, sidecar),
             take_pins(*state, sidecar)});
    }
    changed(job_of(hello));
    return session;
}

void SidecarRegistry::replace(State& state, Sidecar& old, Sidecar& next) {
    if (state.pods.erase(old.session) == 1) {
        old.link.close();
    }
    // The same pod of the same job, after a restart of its sidecar: its last report holds until the
    // next one.
    if (old.last.training_job_uid == next.last.training_job_uid) {
        next.last.datasets = std::move(old.last.datasets);
        next.last.trainer = old.last.trainer;
        next.last.received_at = old.last.received_at;
        next.last.received_wall = old.last.received_wall;
    }
}

Status SidecarRegistry::report(SessionId session, Report report, Moment at) {
    ObjectKey job;
    {
        auto state = state_.lock();
        const auto pod = state->pods.find(session);
        if (pod == state->pods.end()) {
            return fail(ErrorCode::kGone, "another stream speaks for this pod");
        }
        Sidecar& sidecar = state->sidecars[pod->second];
        const Report* before = sidecar.reported ? &sidecar.last : nullptr;
        const Status valid = validate_report(sidecar.last, before, report);
        if (!valid) {
            const bool stale = valid.error().code == ErrorCode::kAlreadyExists;
            (stale ? state->counts.reports_stale : state->counts.reports_refused) += 1;
            return valid;
        }
        trim_texts(report);
        complete_sketches(before, report);
        static_cast<Report&>(sidecar.last) = std::move(report);
        sidecar.last.received_at = at.steady;
        sidecar.last.received_wall = at.wall;
        sidecar.reported = true;
        ++state->counts.reports;
        job = job_of(sidecar.last);
    }
    changed(job);
    return {};
}

void SidecarRegistry::detach(SessionId session, Moment at) {
    ObjectKey job;
    {
        auto state = state_.lock();
        const auto pod = state->pods.find(session);
        if (pod == state->pods.end()) {
            return;
        }
        Sidecar& sidecar = state->sidecars[pod->second];
        sidecar.last.attached = false;
        sidecar.detached_at = at.steady;
        sidecar.link = {};
        job = job_of(sidecar.last);
        state->pods.erase(pod);
    }
    changed(job);
}

void SidecarRegistry::publish(
    const std::vector<Grant>& grants, const GrantReaders& readers, TimePoint now) {
    auto state = state_.lock();
    state->readers = readers;
    state->grants.clear();
    for (const Grant& grant : grants) {
        state->grants[{grant.node, grant.dataset_uid}] = grant;
    }
    for (const auto& [session, pod] : state->pods) {
        Sidecar& sidecar = state->sidecars[pod];
        send(sidecar, {take_grants(*state, sidecar, now), {}, {}});
    }
}

void SidecarRegistry::ask(const std::map<ObjectKey, Probe>& probes) {
    auto state = state_.lock();
    state->probes = probes;
    for (const auto& [session, pod] : state->pods) {
        Sidecar& sidecar = state->sidecars[pod];
        send(sidecar, {{}, take_probe(*state, sidecar), {}});
    }
}

void SidecarRegistry::send(const Sidecar& sidecar, const Orders& orders) {
    if (orders != Orders{}) {
        sidecar.link.send(orders);
    }
}

std::optional<Probe> SidecarRegistry::take_probe(const State& state, Sidecar& sidecar) {
    const auto probe = state.probes.find(job_of(sidecar.last));
    if (probe == state.probes.end() || sidecar.probe_sent == probe->second.id) {
        return std::nullopt;
    }
    sidecar.probe_sent = probe->second.id;
    return probe->second;
}

void SidecarRegistry::pin(const ObjectKey& job, AttemptPins pins) {
    auto state = state_.lock();
    if (pins.pins.empty()) {
        state->pins.erase(job);
        return;
    }
    AttemptPins& known = state->pins[job];
    if (known == pins) {
        return;
    }
    known = std::move(pins);
    // The map is ordered: pods of one namespace are adjacent.
    for (auto it = state->sidecars.lower_bound({job.ns, ""});
         it != state->sidecars.end() && it->first.ns == job.ns;
         ++it) {
        if (it->second.last.attached && job_of(it->second.last) == job) {
            send(it->second, {{}, {}, take_pins(*state, it->second)});
        }
    }
}

// Only for the attempt's pods: pods of the previous attempt are ending.
std::vector<RevisionPin> SidecarRegistry::take_pins(const State& state, Sidecar& sidecar) {
    const auto found = state.pins.find(job_of(sidecar.last));
    if (found == state.pins.end()) {
        return {};
    }
    const AttemptPins& known = found->second;
    if (known.job_uid != sidecar.last.training_job_uid ||
        !sidecar.last.pod.starts_with(known.pod_prefix) || sidecar.pins_sent == known.pins) {
        return {};
    }
    sidecar.pins_sent = known.pins;
    return known.pins;
}

std::vector<Grant> SidecarRegistry::take_grants(
    const State& state, Sidecar& sidecar, TimePoint now) {
    std::vector<Grant> due;
    const auto reads = state.readers.find(job_of(sidecar.last));
    for (const DatasetMount& mount : sidecar.last.mounts) {
        const auto grant = state.grants.find({sidecar.last.node, mount.dataset_uid});
        // A hello may name any uid, even a dataset that is not shared with its namespace.
        if (grant == state.grants.end() || reads == state.readers.end() ||
            !reads->second.contains(mount.dataset_uid)) {
            continue;
        }
        const auto sent = sidecar.sent.find(mount.dataset_uid);
        if (sent == sidecar.sent.end() || sent->second.grant != grant->second ||
            is_due(grant->second, sent->second.at, now)) {
            sidecar.sent[mount.dataset_uid] = {grant->second, now};
            due.push_back(grant->second);
        }
    }
    return due;
}

void SidecarRegistry::forget_silent(TimePoint now) {
    auto state = state_.lock();
    std::erase_if(state->sidecars, [&](const auto& entry) {
        const Sidecar& sidecar = entry.second;
        return !sidecar.last.attached && now - sidecar.detached_at > options_.forget_after;
    });
}

std::vector<SidecarReport> SidecarRegistry::of_job(const ObjectKey& job) {
    std::vector<SidecarReport> reports;
    {
        auto state = state_.lock();
        // The map is ordered: pods of one namespace are adjacent.
        for (auto it = state->sidecars.lower_bound({job.ns, ""});
             it != state->sidecars.end() && it->first.ns == job.ns;
             ++it) {
            if (it->second.last.training_job == job.name) {
                reports.push_back(it->second.last);
            }
        }
    }
    std::stable_sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) {
        return std::tie(a.rank, a.pod) < std::tie(b.rank, b.pod);
    });
    return reports;
}

std::vector<SidecarReport> SidecarRegistry::all() {
    auto state = state_.lock();
    std::vector<SidecarReport> reports;
    reports.reserve(state->sidecars.size());
    for (const auto& [pod, sidecar] : state->sidecars) {
        reports.push_back(sidecar.last);
    }
    return reports;
}

RegistryCounts SidecarRegistry::counts() {
    auto state = state_.lock();
    RegistryCounts counts = state->counts;
    counts.attached = state->pods.size();
    counts.known = state->sidecars.size();
    return counts;
}

ObjectKey SidecarRegistry::job_of(const Hello& hello) {
    return {hello.namespace_name, hello.training_job};
}

void SidecarRegistry::changed(const ObjectKey& job) const {
    if (on_change_) {
        on_change_(job);
    }
}

}  // namespace stoker::control
