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
            forget_pod(*state, pod, found->second);
        }
        state->pods_of[job_of(hello)].insert(pod);
        state->pods[session] = pod;
        Sidecar& sidecar = state->sidecars[pod] = std::move(next);
        send(
            sidecar,
            {{},
             take_probe(*state, sidecar),
             take_pins(*state, sidecar),
             take_peers(*state, sidecar)});
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

void SidecarRegistry::forget_pod(State& state, const ObjectKey& pod, const Sidecar& sidecar) {
    const auto pods = state.pods_of.find(job_of(sidecar.last));
    if (pods != state.pods_of.end() && pods->second.erase(pod) > 0 && pods->second.empty()) {
        state.pods_of.erase(pods);
    }
}

SidecarRegistry::Sidecar* SidecarRegistry::find(State& state, SessionId session) {
    const auto pod = state.pods.find(session);
    return pod == state.pods.end() ? nullptr : &state.sidecars[pod->second];
}

Status SidecarRegistry::report(SessionId session, Report report, Moment at) {
    ObjectKey job;
    bool news = false;
    {
        auto state = state_.lock();
        Sidecar* const found = find(*state, session);
        if (found == nullptr) {
            return fail(ErrorCode::kGone, "another stream speaks for this pod");
        }
        Sidecar& sidecar = *found;
        const Report* before = sidecar.reported ? &sidecar.last : nullptr;
        const Status valid = validate_report(sidecar.last, before, report);
        if (!valid) {
            const bool stale = valid.error().code == ErrorCode::kAlreadyExists;
            (stale ? state->counts.reports_stale : state->counts.reports_refused) += 1;
            return valid;
        }
        trim_texts(report);
        complete_sketches(before, report);
        news = is_news(before, report);
        static_cast<Report&>(sidecar.last) = std::move(report);
        sidecar.last.received_at = at.steady;
        sidecar.last.received_wall = at.wall;
        sidecar.reported = true;
        ++state->counts.reports;
        job = job_of(sidecar.last);
        send(sidecar, {take_grants(*state, sidecar, at.steady), {}, {}});
    }
    changed(job, news);
    return {};
}

void SidecarRegistry::detach(SessionId session, Moment at) {
    ObjectKey job;
    {
        auto state = state_.lock();
        Sidecar* const found = find(*state, session);
        if (found == nullptr) {
            return;
        }
        Sidecar& sidecar = *found;
        sidecar.last.attached = false;
        sidecar.detached_at = at.steady;
        sidecar.link = {};
        job = job_of(sidecar.last);
        state->pods.erase(session);
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

void SidecarRegistry::publish_peers(std::map<std::string, PeerGroup> groups) {
    auto state = state_.lock();
    state->peers = std::move(groups);
    for (const auto& [session, pod] : state->pods) {
        Sidecar& sidecar = state->sidecars[pod];
        send(sidecar, {{}, {}, {}, take_peers(*state, sidecar)});
    }
}

std::optional<PeerGroup> SidecarRegistry::peer_group(const std::string& dataset_uid) {
    auto state = state_.lock();
    const auto found = state->peers.find(dataset_uid);
    return found == state->peers.end() ? std::nullopt : std::optional(found->second);
}

Status SidecarRegistry::request_peer_certificate(
    SessionId session, PeerRequest request, Moment at) {
    if (request.request_pem.empty() || request.request_pem.size() > PeerRequest::kBytesMax) {
        return fail(ErrorCode::kInvalidArgument, "the request is empty or too long");
    }
    ObjectKey job;
    {
        auto state = state_.lock();
        Sidecar* const found = find(*state, session);
        if (found == nullptr) {
            return fail(ErrorCode::kGone, "another stream speaks for this pod");
        }
        Sidecar& sidecar = *found;
        if (sidecar.peer_requested_at &&
            at.steady - *sidecar.peer_requested_at < kPeerRequestInterval) {
            return fail(ErrorCode::kResourceExhausted, "at most one peer certificate a minute");
        }
        sidecar.peer_requested_at = at.steady;
        sidecar.peer_request = std::move(request);
        job = job_of(sidecar.last);
    }
    changed(job);
    return {};
}

std::vector<WaitingPeerRequest> SidecarRegistry::waiting_peer_requests() {
    auto state = state_.lock();
    std::vector<WaitingPeerRequest> result;
    for (const auto& [session, pod] : state->pods) {
        const Sidecar& sidecar = state->sidecars[pod];
        if (sidecar.peer_request) {
            result.push_back({session, pod, *sidecar.peer_request});
        }
    }
    return result;
}

void SidecarRegistry::answer_peer_request(
    SessionId session, const std::optional<PeerCertificate>& certificate) {
    auto state = state_.lock();
    Sidecar* const found = find(*state, session);
    if (found == nullptr) {
        return;
    }
    Sidecar& sidecar = *found;
    sidecar.peer_request.reset();
    if (certificate) {
        ++state->counts.peer_certificates;
        send(sidecar, {{}, {}, {}, {}, certificate});
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
    const auto pods = state->pods_of.find(job);
    if (pods == state->pods_of.end()) {
        return;
    }
    for (const ObjectKey& pod : pods->second) {
        Sidecar& sidecar = state->sidecars.at(pod);
        if (sidecar.last.attached) {
            send(sidecar, {{}, {}, take_pins(*state, sidecar)});
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

std::set<std::string> SidecarRegistry::readable_mounts(const State& state, const Sidecar& sidecar) {
    std::set<std::string> uids;
    const auto reads = state.readers.find({sidecar.last.namespace_name, sidecar.last.pod});
    for (const DatasetMount& mount : sidecar.last.mounts) {
        // A hello may name any uid, even a dataset that is not shared with its namespace.
        if (reads != state.readers.end() && reads->second.contains(mount.dataset_uid)) {
            uids.insert(mount.dataset_uid);
        }
    }
    return uids;
}

std::set<std::string> SidecarRegistry::led_datasets(const Sidecar& sidecar) {
    std::set<std::string> uids;
    for (const DatasetReport& dataset : sidecar.last.datasets) {
        if (sidecar.reported && dataset.leader) {
            uids.insert(dataset.dataset_uid);
        }
    }
    return uids;
}

std::vector<Grant> SidecarRegistry::take_grants(
    const State& state, Sidecar& sidecar, TimePoint now) {
    const std::set<std::string> led = led_datasets(sidecar);
    std::erase_if(sidecar.sent, [&](const auto& entry) { return !led.contains(entry.first); });
    std::vector<Grant> due;
    for (const std::string& uid : readable_mounts(state, sidecar)) {
        if (!led.contains(uid)) {
            continue;
        }
        const auto grant = state.grants.find({sidecar.last.node, uid});
        if (grant == state.grants.end()) {
            continue;
        }
        const auto sent = sidecar.sent.find(uid);
        if (sent == sidecar.sent.end() || sent->second.grant != grant->second ||
            is_due(grant->second, sent->second.at, now)) {
            sidecar.sent[uid] = {grant->second, now};
            due.push_back(grant->second);
        }
    }
    return due;
}

std::vector<PeerGroup> SidecarRegistry::take_peers(const State& state, Sidecar& sidecar) {
    std::vector<PeerGroup> changed;
    for (const std::string& uid : readable_mounts(state, sidecar)) {
        const auto group = state.peers.find(uid);
        if (group != state.peers.end() && sidecar.peers_sent[uid] != group->second.version) {
            sidecar.peers_sent[uid] = group->second.version;
            changed.push_back(group->second);
        }
    }
    return changed;
}

void SidecarRegistry::forget_silent(TimePoint now) {
    auto state = state_.lock();
    std::erase_if(state->sidecars, [&](const auto& entry) {
        const Sidecar& sidecar = entry.second;
        const bool silent =
            !sidecar.last.attached && now - sidecar.detached_at > options_.forget_after;
        if (silent) {
            forget_pod(*state, entry.first, sidecar);
        }
        return silent;
    });
}

std::vector<SidecarReport> SidecarRegistry::of_job(const ObjectKey& job) {
    std::vector<SidecarReport> reports;
    {
        auto state = state_.lock();
        const auto pods = state->pods_of.find(job);
        if (pods == state->pods_of.end()) {
            return reports;
        }
        for (const ObjectKey& pod : pods->second) {
            reports.push_back(state->sidecars.at(pod).last);
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

void SidecarRegistry::changed(const ObjectKey& job, bool news) const {
    if (on_change_) {
        on_change_(job, news);
    }
}

}  // namespace stoker::control
