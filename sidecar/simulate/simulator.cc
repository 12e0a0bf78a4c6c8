#include "sidecar/simulate/simulator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sidecar/simulate/assembly.h"
#include "sidecar/simulate/catalogue.h"
#include "sidecar/simulate/job_run.h"
#include "sidecar/simulate/node_model.h"

namespace stoker::simulate {

namespace {

std::vector<JobRun> make_runs(const Scenario& scenario, Assembly& parts, Node& node) {
    std::vector<JobRun> runs;
    for (std::size_t i = 0; i < scenario.jobs.size(); ++i) {
        const JobSpec& job = scenario.jobs[i];
        JobRun::Setting setting;
        setting.job = i;
        setting.contract = job.contract;
        setting.sampler = parts.jobs[i].sampler.get();
        setting.losses = parts.jobs[i].losses.get();
        setting.feed = parts.feed.get();
        setting.samples = parts.sizes.size();
        setting.epochs = scenario.epochs;
        setting.batch = scenario.batch;
        setting.ahead = scenario.ahead;
        setting.foresight = parts.jobs[i].foresight;
        setting.plan = parts.jobs[i].plan;
        setting.samples_per_second = scenario.samples_per_second * job.speed;
        setting.reads_all = parts.jobs[i].reads_all;
        setting.start = TimePoint{job.start};
        runs.emplace_back(std::move(setting), node);
    }
    return runs;
}

std::unique_ptr<Node> make_node(const Scenario& scenario, Assembly& parts) {
    NodeModel::Setting setting;
    setting.sizes = parts.sizes;
    setting.resident_bytes = parts.resident_bytes;
    setting.window_bytes = parts.window_bytes;
    setting.origin = scenario.origin;
    setting.policy = parts.policy.get();
    setting.background = parts.background;
    setting.scan = parts.scan.get();
    for (const JobParts& job : parts.jobs) {
        setting.samplers.push_back(job.sampler.get());
    }
    return std::make_unique<NodeModel>(std::move(setting));
}

void deliver(Node& node, std::vector<JobRun>& runs) {
    for (const Node::Answer& answer : node.take_answers()) {
        runs[answer.job].on_ready(answer.batch, answer.at);
    }
}

std::optional<TimePoint> next_event(const Node& node, const std::vector<JobRun>& runs) {
    std::optional<TimePoint> next = node.next_event();
    for (const JobRun& run : runs) {
        if (const auto at = run.next_event()) {
            next = std::min(next.value_or(*at), *at);
        }
    }
    return next;
}

bool is_over(const Scenario& scenario, const std::vector<JobRun>& runs) {
    const auto finished = [](const JobRun& run) { return run.is_finished(); };
    return scenario.until_first_ends ? std::ranges::any_of(runs, finished)
                                     : std::ranges::all_of(runs, finished);
}

void run_all(const Scenario& scenario, Node& node, std::vector<JobRun>& runs) {
    while (!is_over(scenario, runs)) {
        const auto now = next_event(node, runs);
        if (!now) {
            return;
        }
        node.advance(*now);
        deliver(node, runs);
        for (JobRun& run : runs) {
            run.finish_batch(*now);
        }
        for (JobRun& run : runs) {
            run.go_on(*now);
        }
        deliver(node, runs);
    }
}

}  // namespace

Result<Outcome> run(const Scenario& scenario) {
    STOKER_TRY_VOID(check_scenario(scenario));
    if (scenario.cache.policy == "nopfs") {
        return fail(ErrorCode::kInvalidArgument, "nopfs is about several nodes: run_clairvoyant()");
    }
    STOKER_TRY(const auto assembled, assemble(scenario));
    Assembly& parts = *assembled;
    const auto node = make_node(scenario, parts);
    auto runs = make_runs(scenario, parts, *node);
    run_all(scenario, *node, runs);

    Outcome outcome;
    outcome.samples = parts.sizes.size();
    outcome.dataset_bytes = parts.dataset_bytes;
    outcome.resident_bytes = parts.resident_bytes;
    outcome.window_bytes = parts.window_bytes;
    for (const JobRun& run : runs) {
        outcome.jobs.push_back(run.figures());
    }
    return outcome;
}

}  // namespace stoker::simulate
