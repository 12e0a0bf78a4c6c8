#include "sidecar/simulate/simulator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sidecar/simulate/assembly.h"
#include "sidecar/simulate/catalogue.h"

namespace stoker::simulate {

namespace {

// Delivers replies until there are none.
void deliver(Assembly& parts, TimePoint now) {
    for (auto replies = parts.node->take_replies(); !replies.empty();
         replies = parts.node->take_replies()) {
        for (const sidecar::FetchReply& reply : replies) {
            parts.jobs[JobRun::job_of(reply.connection)].on_reply(reply, now);
        }
    }
}

std::optional<TimePoint> next_event(const Assembly& parts) {
    std::optional<TimePoint> next = parts.node->next_event();
    for (const JobRun& job : parts.jobs) {
        if (const auto at = job.next_event()) {
            next = std::min(next.value_or(*at), *at);
        }
    }
    return next;
}

bool is_over(const Scenario& scenario, const Assembly& parts) {
    const auto finished = [](const JobRun& job) { return job.is_finished(); };
    return scenario.until_first_ends ? std::ranges::any_of(parts.jobs, finished)
                                     : std::ranges::all_of(parts.jobs, finished);
}

Status run_all(const Scenario& scenario, Assembly& parts) {
    TimePoint now{};
    while (!is_over(scenario, parts)) {
        const auto next = next_event(parts);
        if (!next) {
            return {};
        }
        now = std::max(now, *next);
        parts.node->advance(now);
        deliver(parts, now);
        for (JobRun& job : parts.jobs) {
            job.finish_batch(now);
        }
        for (JobRun& job : parts.jobs) {
            STOKER_TRY_VOID(job.go_on(now));
        }
        deliver(parts, now);
    }
    return {};
}

}  // namespace

Result<Outcome> run(const Scenario& scenario) {
    STOKER_TRY_VOID(check_scenario(scenario));
    if (scenario.cache.policy == "nopfs") {
        return fail(
            ErrorCode::kInvalidArgument, "policy nopfs needs several nodes: use run_clairvoyant()");
    }
    const auto parts = assemble(scenario);
    STOKER_TRY_VOID(run_all(scenario, *parts));
    Outcome outcome = std::move(parts->outcome);
    for (const JobRun& job : parts->jobs) {
        outcome.jobs.push_back(job.figures());
    }
    return outcome;
}

}  // namespace stoker::simulate
