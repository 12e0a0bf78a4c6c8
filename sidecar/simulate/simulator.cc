#include "sidecar/simulate/simulator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sidecar/simulate/assembly.h"
#include "sidecar/simulate/catalogue.h"

namespace stoker::simulate {

namespace {

// Delivers the engine's replies to the jobs until there are no more.
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

// Totals of all jobs at one moment.
SteadyPart totals(const Assembly& parts, TimePoint now) {
    SteadyPart totals{now - TimePoint{}, 0, {}};
    for (const JobRun& job : parts.jobs) {
        std::uint64_t requested = 0;
        for (const EpochFigures& epoch : job.figures().epochs) {
            totals.fetched_samples += epoch.origin_samples;
            requested += epoch.requested;
        }
        totals.computed_samples.push_back(requested - job.outstanding_samples());
    }
    return totals;
}

// Notes when the steady part of the run begins and ends.
class SteadyMeter {
public:
    SteadyMeter(const Scenario& scenario, Assembly& parts)
        : discard_(scenario.discard),
          parts_(parts) {}

    void look(TimePoint now) {
        const auto is_warm = [this](const JobRun& job) { return job.epochs_done() >= discard_; };
        if (began_.computed_samples.empty() && std::ranges::all_of(parts_.jobs, is_warm)) {
            began_ = totals(parts_, now);
        }
        const auto finished = [](const JobRun& job) { return job.is_finished(); };
        if (!ended_ && std::ranges::any_of(parts_.jobs, finished)) {
            end(now);
        }
    }

private:
    void end(TimePoint now) {
        ended_ = true;
        if (began_.computed_samples.empty() || now - TimePoint{} == began_.time) {
            return;
        }
        SteadyPart part = totals(parts_, now);
        part.time -= began_.time;
        part.fetched_samples -= began_.fetched_samples;
        for (std::size_t job = 0; job < part.computed_samples.size(); ++job) {
            part.computed_samples[job] -= began_.computed_samples[job];
        }
        parts_.outcome.steady = std::move(part);
    }

    std::uint32_t discard_;
    Assembly& parts_;
    SteadyPart began_;  // totals when the steady part began; empty: it has not begun
    bool ended_ = false;
};

Status run_all(const Scenario& scenario, Assembly& parts) {
    TimePoint now{};
    SteadyMeter meter{scenario, parts};
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
        meter.look(now);
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
