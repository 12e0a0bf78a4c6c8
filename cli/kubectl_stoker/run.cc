#include "cli/kubectl_stoker/run.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/advise/advise_report.h"
#include "cli/kubectl_stoker/cluster.h"
#include "cli/kubectl_stoker/complete.h"
#include "cli/kubectl_stoker/job_advice.h"
#include "cli/kubectl_stoker/options.h"
#include "cli/kubectl_stoker/quota_tree.h"
#include "cli/kubectl_stoker/report.h"
#include "cli/kubectl_stoker/top.h"
#include "cli/kubectl_stoker/what_if.h"
#include "cli/kubectl_stoker/where.h"
#include "cli/kubectl_stoker/why.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/workload/build_job.h"

namespace stoker::cli {

namespace {

using control::AllocationSnapshot;
using control::ObjectKey;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr Duration kOld = std::chrono::seconds{60};
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

class Program {
public:
    Program(
        Options options,
        const Console& console,
        const Clock& clock,
        std::unique_ptr<Cluster> cluster)
        : options_(std::move(options)),
          console_(console),
          clock_(clock),
          cluster_(std::move(cluster)) {}

    int run() {
        const Status status = options_.command == "top"       ? top()
                              : options_.command == "why"     ? why()
                              : options_.command == "what-if" ? what_if()
                              : options_.command == "where"   ? where()
                              : options_.command == "advise"  ? advise()
                              : options_.command == "report"  ? report()
                                                              : quota();
        if (!status) {
            console_.warn("error: " + status.error().message + "\n" + advice(status.error()));
        }
        return status ? kDone : kFailed;
    }

private:
    [[nodiscard]] const std::string& own_namespace() const { return *options_.ns; }

    // Namespace to list; empty: all namespaces.
    [[nodiscard]] std::string scope() const {
        return options_.all_namespaces ? "" : own_namespace();
    }

    [[nodiscard]] std::string advice(const Error& error) const {
        if (error.code != ErrorCode::kForbidden) {
            return "";
        }
        if (options_.command == "what-if") {
            return fmt::format(
                "An administrator can let you ask the operator: bind Role stoker-explain of "
                "namespace {}\nto you (chart value rbac.explain.subjects). `top` and `quota` do "
                "without.\n",
                options_.connect.operator_namespace);
        }
        return options_.all_namespaces ? "Leave out -A to look at your own namespace.\n" : "";
    }

    void say_nothing_found() const {
        console_.warn(
            options_.all_namespaces
                ? std::string{"No resources found\n"}
                : fmt::format("No resources found in {} namespace.\n", own_namespace()));
    }

    Status top() {
        do {
            STOKER_TRY(const std::vector<control::TrainingJob> jobs, cluster_->jobs(scope()));
            const std::vector<TopRow> rows = top_rows(jobs);
            const std::string clear = options_.watch && console_.terminal ? kClearScreen : "";
            if (options_.json) {
                console_.print(top_json(rows));
            } else if (rows.empty()) {
                console_.print(clear);
                say_nothing_found();
            } else {
                console_.print(clear + top_text(rows, options_.all_namespaces));
            }
        } while (options_.watch && console_.wait(options_.interval));
        return {};
    }

    // The job, with the operator's explanation unless only the job's status can be read.
    Result<WhyFacts> why_facts() {
        const ObjectKey key = key_of(options_.job, own_namespace());
        WhyFacts facts;
        STOKER_TRY(facts.job, cluster_->job(key));
        auto snapshot = cluster_->snapshot();
        if (snapshot) {
            check(*snapshot);
            facts.explanation = control::explain_job(snapshot->view, key);
            facts.age = snapshot->age();
            facts.version = snapshot->version;
            facts.view = std::move(snapshot->view);
            if (!facts.explanation) {
                console_.warn("note: the job asks for no cache bytes now; this is its status.\n");
            }
        } else {
            console_.warn(fmt::format(
                "note: this is what the job's status says. The operator, who knows more, was not "
                "asked:\n      {}\n",
                snapshot.error().message));
        }
        return facts;
    }

    Status why() {
        STOKER_TRY(const WhyFacts facts, why_facts());
        console_.print(options_.json ? why_json(facts) : why_text(facts));
        return {};
    }

    // The TrainingJob that a pod belongs to.
    Result<std::string> job_of_pod() {
        const ObjectKey key = key_of(options_.pod, own_namespace());
        STOKER_TRY(const control::Pod pod, cluster_->pod(key));
        const auto label = pod.meta.labels.find(std::string{control::kJobLabel});
        if (label == pod.meta.labels.end()) {
            return fail(
                ErrorCode::kNotFound,
                fmt::format(
                    "pod {} belongs to no TrainingJob, so nobody measures its reads: record a "
                    "trace "
                    "and say --trace FILE",
                    to_string(key)));
        }
        return fmt::format("{}/{}", key.ns, label->second);
    }

    Status advise() {
        if (!options_.pod.empty()) {
            STOKER_TRY(options_.job, job_of_pod());
        }
        STOKER_TRY(WhyFacts why, why_facts());
        JobAdviceFacts facts;
        facts.job = std::move(why.job);
        facts.explanation = std::move(why.explanation);
        const auto demand =
            std::ranges::find(why.view.demands, facts.job.meta.key(), &control::Demand::job);
        if (demand != why.view.demands.end()) {
            facts.demand = *demand;
        }
        STOKER_TRY(const JobAdvice result, advise_job(facts));
        console_.print(options_.json ? job_advice_json(result) : job_advice_text(result));
        return {};
    }

    // Takes a list for the report; a list that the user may not read becomes a note.
    template <class T>
    Status take(
        Result<std::vector<T>> list, const char* what, ReportFacts& facts, std::vector<T>& out) {
        if (!list && list.error().code == ErrorCode::kForbidden) {
            facts.left_out.push_back(fmt::format("You may not list {}; they are left out.", what));
            return {};
        }
        STOKER_TRY(out, std::move(list));
        return {};
    }

    Status report() {
        ReportFacts facts;
        STOKER_TRY(facts.why, why_facts());
        const ObjectKey key = facts.why.job.meta.key();
        STOKER_TRY_VOID(take(cluster_->pods_of(key), "pods", facts, facts.pods));
        STOKER_TRY_VOID(take(cluster_->events_of(key), "Events", facts, facts.events));
        facts.made_at = clock_.wall_now();
        const std::string page = report_html(facts);
        if (options_.report_path.empty() || options_.report_path == "-") {
            console_.print(page);
            return {};
        }
        std::ofstream file{options_.report_path, std::ios::binary};
        file << page;
        file.close();
        if (!file) {
            return fail(
                ErrorCode::kUnavailable, fmt::format("{} cannot be written", options_.report_path));
        }
        console_.warn(fmt::format("Wrote {}\n", options_.report_path));
        return {};
    }

    Status what_if() {
        STOKER_TRY(const AllocationSnapshot snapshot, cluster_->snapshot());
        check(snapshot);
        STOKER_TRY(
            const WhatIf result,
            cli::what_if(snapshot.view, changes_of(options_, own_namespace())));
        console_.print(options_.json ? what_if_json(result) : what_if_text(result));
        return {};
    }

    Status quota() {
        QuotaFacts facts;
        STOKER_TRY(facts.quotas, cluster_->quotas(scope()));
        STOKER_TRY(facts.jobs, cluster_->jobs(scope()));
        auto pools = cluster_->pools();
        if (pools) {
            facts.pools = *std::move(pools);
        } else if (pools.error().code == ErrorCode::kForbidden) {
            console_.warn("note: you may not list CachePools, so their sizes are left out.\n");
        } else {
            return fail(std::move(pools).error());
        }
        if (facts.quotas.empty() && facts.jobs.empty() && facts.pools.empty() && !options_.json) {
            say_nothing_found();
            return {};
        }
        console_.print(options_.json ? quota_json(facts) : quota_text(facts));
        return {};
    }

    Status where() {
        std::vector<control::Dataset> datasets;
        if (options_.dataset.empty()) {
            STOKER_TRY(datasets, cluster_->datasets(scope()));
        } else {
            const ObjectKey key = key_of(options_.dataset, own_namespace());
            STOKER_TRY(control::Dataset dataset, cluster_->dataset(key));
            datasets.push_back(std::move(dataset));
        }
        const std::vector<WhereRow> rows = where_rows(datasets);
        if (options_.json) {
            console_.print(where_json(rows));
        } else if (rows.empty()) {
            say_nothing_found();
        } else {
            console_.print(where_text(rows, options_.all_namespaces));
        }
        return {};
    }

    // Warns if the answer may be stale or come from another version of the planner.
    void check(const AllocationSnapshot& snapshot) {
        if (snapshot.age() > kOld) {
            console_.warn(fmt::format(
                "warning: the operator decided this {} s ago, and should decide every 20 s: look "
                "at its log.\n",
                std::chrono::floor<std::chrono::seconds>(snapshot.age()).count()));
        }
        if (control::plan_allocation(snapshot.view) != snapshot.plan) {
            console_.warn(fmt::format(
                "warning: operator {} decides otherwise than this program ({}) would; take the "
                "numbers as rough,\n         or use the plugin of the operator's version.\n",
                snapshot.version,
                STOKER_VERSION));
        }
    }

    Options options_;
    const Console& console_;
    const Clock& clock_;
    std::unique_ptr<Cluster> cluster_;
};

std::vector<std::string> names_of_jobs(const Clock& clock) {
    std::vector<std::string> names;
    if (auto cluster = Cluster::open({}, clock)) {
        if (const auto jobs = (*cluster)->jobs(namespace_of_context({}))) {
            for (const control::TrainingJob& job : *jobs) {
                names.push_back(job.meta.name);
            }
        }
    }
    return names;
}

int advise_about_trace(const Options& options, const Console& console) {
    const auto advice = advise_from_trace(options.advise);
    if (!advice) {
        console.warn(fmt::format("error: {}\n", advice.error().message));
        return kFailed;
    }
    console.print(options.json ? advice_json(*advice) : advice_text(*advice));
    return kDone;
}

}  // namespace

int run(
    const std::vector<std::string_view>& arguments, const Console& console, const Clock& clock) {
    if (!arguments.empty() && arguments[0] == "__complete") {
        console.print(complete(
            {arguments.begin() + 1, arguments.end()}, [&clock] { return names_of_jobs(clock); }));
        return kDone;
    }
    if (!arguments.empty() && (arguments[0] == "version" || arguments[0] == "--version")) {
        console.print("kubectl-stoker " STOKER_VERSION "\n");
        return kDone;
    }
    auto options = parse_options(arguments);
    if (!options) {
        console.warn(fmt::format(
            "error: {}\nSee 'kubectl stoker --help' for usage.\n", options.error().message));
        return kFailed;
    }
    if (options->help) {
        console.print(help_text(options->command));
        return kDone;
    }
    if (!options->advise.trace_path.empty()) {
        return advise_about_trace(*options, console);
    }
    auto cluster = Cluster::open(options->connect, clock);
    if (!cluster) {
        console.warn(fmt::format("error: {}\n", cluster.error().message));
        return kFailed;
    }
    if (!options->ns) {
        options->ns = namespace_of_context(options->connect);
    }
    return Program(*std::move(options), console, clock, *std::move(cluster)).run();
}

}  // namespace stoker::cli
