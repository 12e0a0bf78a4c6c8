#include "operator/agents/agent_registry.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace stoker::control {

namespace {

bool is_due(const Grant& grant, TimePoint sent_at, TimePoint now) {
    return now - sent_at >= std::chrono::seconds{grant.valid_seconds} / 3;
}

}  // namespace

AgentRegistry::AgentRegistry(Options options, OnChange on_change)
    : options_(options),
      on_change_(std::move(on_change)) {}

Result<SessionId> AgentRegistry::attach(const Hello& hello, AgentLink link, Moment at) {
    STOKER_TRY_VOID(validate_hello(hello));
    const ObjectKey pod{hello.namespace_name, hello.pod};
    SessionId session;
    {
        auto state = state_.lock();
        const auto found = state->agents.find(pod);
        if (found == state->agents.end() && state->agents.size() >= options_.agent_count_max) {
            return fail(
                ErrorCode::kResourceExhausted,
                fmt::format("more than {} sidecars", options_.agent_count_max));
        }
        session = SessionId{state->next_session++};
        Agent next;
        next.session = session;
        next.link = std::move(link);
        next.last = {hello, {}, at.steady, at.wall, true};
        if (found != state->agents.end()) {
            replace(*state, found->second, next);
        }
        state->pods[session] = pod;
        Agent& agent = state->agents[pod] = std::move(next);
        send(
            agent,
            {take_grants(*state, agent, at.steady),
             take_probe(*state, agent),
             take_pins(*state, agent)});
    }
    changed(job_of(hello));
    return session;
}

void AgentRegistry::replace(State& state, Agent& old, Agent& next) {
    if (state.pods.erase(old.session) == 1) {
        old.link.close();
    }
    // The same pod of the same job, after a restart of its sidecar: what it said holds until it
    // speaks.
    if (old.last.training_job_uid == next.last.training_job_uid) {
        next.last.datasets = std::move(old.last.datasets);
        next.last.trainer = old.last.trainer;
        next.last.received_at = old.last.received_at;
        next.last.received_wall = old.last.received_wall;
    }
}

Status AgentRegistry::report(SessionId session, Report report, Moment at) {
    ObjectKey job;
    {
        auto state = state_.lock();
        const auto pod = state->pods.find(session);
        if (pod == state->pods.end()) {
            return fail(ErrorCode::kGone, "another stream speaks for this pod");
        }
        Agent& agent = state->agents[pod->second];
        const Report* before = agent.reported ? &agent.last : nullptr;
        const Status valid = validate_report(agent.last, before, report);
        if (!valid) {
            const bool stale = valid.error().code == ErrorCode::kAlreadyExists;
            (stale ? state->counts.reports_stale : state->counts.reports_refused) += 1;
            return valid;
        }
        trim_texts(report);
        complete_sketches(before, report);
        static_cast<Report&>(agent.last) = std::move(report);
        agent.last.received_at = at.steady;
        agent.last.received_wall = at.wall;
        agent.reported = true;
        ++state->counts.reports;
        job = job_of(agent.last);
    }
    changed(job);
    return {};
}

void AgentRegistry::detach(SessionId session, Moment at) {
    ObjectKey job;
    {
        auto state = state_.lock();
        const auto pod = state->pods.find(session);
        if (pod == state->pods.end()) {
            return;
        }
        Agent& agent = state->agents[pod->second];
        agent.last.attached = false;
        agent.detached_at = at.steady;
        agent.link = {};
        job = job_of(agent.last);
        state->pods.erase(pod);
    }
    changed(job);
}

void AgentRegistry::publish(
    const std::vector<Grant>& grants, const GrantReaders& readers, TimePoint now) {
    auto state = state_.lock();
    state->readers = readers;
    state->grants.clear();
    for (const Grant& grant : grants) {
        state->grants[{grant.node, grant.dataset_uid}] = grant;
    }
    for (const auto& [session, pod] : state->pods) {
        Agent& agent = state->agents[pod];
        send(agent, {take_grants(*state, agent, now), {}, {}});
    }
}

void AgentRegistry::ask(const std::map<ObjectKey, Probe>& probes) {
    auto state = state_.lock();
    state->probes = probes;
    for (const auto& [session, pod] : state->pods) {
        Agent& agent = state->agents[pod];
        send(agent, {{}, take_probe(*state, agent), {}});
    }
}

void AgentRegistry::send(const Agent& agent, const Orders& orders) {
    if (orders != Orders{}) {
        agent.link.send(orders);
    }
}

std::optional<Probe> AgentRegistry::take_probe(const State& state, Agent& agent) {
    const auto probe = state.probes.find(job_of(agent.last));
    if (probe == state.probes.end() || agent.probe_sent == probe->second.id) {
        return std::nullopt;
    }
    agent.probe_sent = probe->second.id;
    return probe->second;
}

void AgentRegistry::pin(const ObjectKey& job, AttemptPins pins) {
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
    // Pods of one namespace stand together.
    for (auto it = state->agents.lower_bound({job.ns, ""});
         it != state->agents.end() && it->first.ns == job.ns;
         ++it) {
        if (it->second.last.attached && job_of(it->second.last) == job) {
            send(it->second, {{}, {}, take_pins(*state, it->second)});
        }
    }
}

// An attempt's pods only: the pods of the one before are on their way out.
std::vector<RevisionPin> AgentRegistry::take_pins(const State& state, Agent& agent) {
    const auto found = state.pins.find(job_of(agent.last));
    if (found == state.pins.end()) {
        return {};
    }
    const AttemptPins& known = found->second;
    if (known.job_uid != agent.last.training_job_uid ||
        !agent.last.pod.starts_with(known.pod_prefix) || agent.pins_sent == known.pins) {
        return {};
    }
    agent.pins_sent = known.pins;
    return known.pins;
}

std::vector<Grant> AgentRegistry::take_grants(const State& state, Agent& agent, TimePoint now) {
    std::vector<Grant> due;
    const auto reads = state.readers.find(job_of(agent.last));
    for (const DatasetMount& mount : agent.last.mounts) {
        const auto grant = state.grants.find({agent.last.node, mount.dataset_uid});
        // A hello may name any uid, even one that nobody has shared with its namespace.
        if (grant == state.grants.end() || reads == state.readers.end() ||
            !reads->second.contains(mount.dataset_uid)) {
            continue;
        }
        const auto sent = agent.sent.find(mount.dataset_uid);
        if (sent == agent.sent.end() || sent->second.grant != grant->second ||
            is_due(grant->second, sent->second.at, now)) {
            agent.sent[mount.dataset_uid] = {grant->second, now};
            due.push_back(grant->second);
        }
    }
    return due;
}

void AgentRegistry::forget_silent(TimePoint now) {
    auto state = state_.lock();
    std::erase_if(state->agents, [&](const auto& entry) {
        const Agent& agent = entry.second;
        return !agent.last.attached && now - agent.detached_at > options_.forget_after;
    });
}

std::vector<AgentReport> AgentRegistry::of_job(const ObjectKey& job) {
    std::vector<AgentReport> reports;
    {
        auto state = state_.lock();
        // Pods of one namespace stand together.
        for (auto it = state->agents.lower_bound({job.ns, ""});
             it != state->agents.end() && it->first.ns == job.ns;
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

std::vector<AgentReport> AgentRegistry::all() {
    auto state = state_.lock();
    std::vector<AgentReport> reports;
    reports.reserve(state->agents.size());
    for (const auto& [pod, agent] : state->agents) {
        reports.push_back(agent.last);
    }
    return reports;
}

RegistryCounts AgentRegistry::counts() {
    auto state = state_.lock();
    RegistryCounts counts = state->counts;
    counts.attached = state->pods.size();
    counts.known = state->agents.size();
    return counts;
}

ObjectKey AgentRegistry::job_of(const Hello& hello) {
    return {hello.namespace_name, hello.training_job};
}

void AgentRegistry::changed(const ObjectKey& job) const {
    if (on_change_) {
        on_change_(job);
    }
}

}  // namespace stoker::control
