// stoker-bench-scale      the real operator at the size of a large cluster
//
// Starts --operator against a fake API server on loopback that holds --jobs running TrainingJobs with
// --pods pods on --nodes nodes, and lets --streams sidecars report over TLS as real ones do. Prints
// one JSON object per row, as each is known:
//
//   ready      from the operator's start until its caches are filled; its memory
//   new_jobs   time from a new TrainingJob to its Job, while the operator brings the statuses of all
//              the others up to date (--backlog-seconds)
//   attach     until all sidecars have attached and have their grants
//   steady     processor time and memory while nothing but reports comes (--steady-seconds)
//   failover   the leader is killed; until the standby has all sidecars, and all have grants; its
//              processor time for that
//
// The fake API server stores objects as text, and sends a list at version 0 in one answer, as the real
// one does.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "bench/scale/cluster.h"
#include "bench/scale/fake_api.h"
#include "bench/scale/replica.h"
#include "bench/scale/sidecar_fleet.h"
#include "common/base/check.h"
#include "common/base/guarded.h"
#include "common/flags/flags.h"
#include "common/program/program.h"
#include "tests/support/certificates.h"

namespace stoker::bench {

namespace {

struct Settings {
    std::string program;
    ClusterSize size;
    std::uint64_t backlog_seconds = 60;
    std::uint64_t steady_seconds = 60;
    std::uint64_t patience_seconds = 300;
    std::uint64_t report_seconds = 2;
    double new_jobs_per_second = 2;
};

double since(TimePoint begin) {
    return std::chrono::duration<double>(SystemClock{}.now() - begin).count();
}

// Times from a TrainingJob to its Job. Thread-safe.
class JobLatency {
public:
    void began(const std::string& job) { (*begun_.lock())[job] = SystemClock{}.now(); }

    void ended(const std::string& job) {
        auto begun = begun_.lock();
        if (const auto found = begun->find(job); found != begun->end()) {
            seconds_.lock()->push_back(since(found->second));
            begun->erase(found);
        }
    }

    // The times, sorted. A TrainingJob that has no Job yet counts with its age.
    std::vector<double> take() {
        std::vector<double> result = std::move(*seconds_.lock());
        auto begun = begun_.lock();
        for (const auto& [job, at] : *begun) {
            result.push_back(since(at));
        }
        begun->clear();
        seconds_.lock()->clear();
        std::sort(result.begin(), result.end());
        return result;
    }

private:
    Guarded<std::map<std::string, TimePoint>> begun_;
    Guarded<std::vector<double>> seconds_;
};

double at_share(const std::vector<double>& sorted, double share) {
    return sorted.empty()
               ? 0
               : sorted[std::min(
                     sorted.size() - 1,
                     static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

class Run {
public:
    explicit Run(Settings settings)
        : settings_(std::move(settings)),
          certificates_(testing::make_certificates()),
          api_(tokens_, [this](std::string_view plural, const control::ObjectKey& key) {
              if (plural == "jobs") {
                  latency_.ended(key.ns + "/" + key.name.substr(0, key.name.rfind("-a")));
              }
          }) {
        jobs_ = fill_cluster(api_, settings_.size);
    }

    bool run() {
        bool good = start(leader_, "operator-0");
        good = good && new_jobs();
        good = good && attach();
        if (good) {
            steady();
        }
        good = good && start(standby_, "operator-1");
        return good && fail_over();
    }

private:
    bool start(std::unique_ptr<Replica>& replica, const char* name) {
        const TimePoint begin = SystemClock{}.now();
        replica = std::make_unique<Replica>(settings_.program, api_.url(), name, certificates_);
        const bool good = wait([&] { return replica->is_ready(); });
        const ProcessUse use = replica->use();
        fmt::print(
            R"({{"row":"ready","replica":"{}","ready":{},"seconds":{:.1f},"cpu_seconds":{:.1f},"memory_mib":{:.0f},"memory_peak_mib":{:.0f}}})"
            "\n",
            name,
            good,
            since(begin),
            use.cpu_seconds,
            use.memory_mib,
            use.memory_peak_mib);
        std::fflush(stdout);
        return good;
    }

    // New jobs arrive while all others' statuses are written.
    bool new_jobs() {
        if (!wait([&] { return leader_->port("serving sidecars") != 0; })) {
            return false;
        }
        const TimePoint begin = SystemClock{}.now();
        const double cpu = leader_->use().cpu_seconds;
        std::size_t number = 0;
        while (since(begin) < static_cast<double>(settings_.backlog_seconds)) {
            const std::size_t set = number % settings_.size.datasets;
            latency_.began(fmt::format("ns-{}/new-{}", set % settings_.size.namespaces, number));
            add_new_job(api_, number++, settings_.size);
            const std::chrono::duration<double> interval{1 / settings_.new_jobs_per_second};
            std::this_thread::sleep_for(interval);  // a steady rate of new jobs
        }
        std::this_thread::sleep_for(std::chrono::seconds{2});  // the last jobs get their Jobs
        const std::vector<double> seconds = latency_.take();
        fmt::print(
            R"({{"row":"new_jobs","jobs":{},"p50_seconds":{:.3f},"p99_seconds":{:.3f},"max_seconds":{:.3f},"cores":{:.2f},"requests":{}}})"
            "\n",
            seconds.size(),
            at_share(seconds, 0.5),
            at_share(seconds, 0.99),
            at_share(seconds, 1),
            (leader_->use().cpu_seconds - cpu) / since(begin),
            requests());
        std::fflush(stdout);
        return true;
    }

    std::string requests() {
        std::string text;
        for (const auto& [what, count] : api_.requests()) {
            text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", what, count);
        }
        return "{" + text + "}";
    }

    bool attach() {
        SidecarFleet::Options options;
        options.ca = certificates_.ca;
        options.token = [this](const PlacedJob& job) {
            return tokens_.make(
                {job.ns, job.pod, job.pod_uid, job.node},
                static_cast<std::int64_t>(std::time(nullptr)));
        };
        options.address = [this] {
            auto port = port_.lock();
            return *port == 0 ? "" : fmt::format("localhost:{}", *port);
        };
        options.report_interval = std::chrono::seconds{settings_.report_seconds};
        reporting_.assign(
            jobs_.begin(),
            jobs_.begin() +
                static_cast<std::ptrdiff_t>(std::min(settings_.size.streams, jobs_.size())));
        fleet_ = std::make_unique<SidecarFleet>(reporting_, options);
        *port_.lock() = leader_->port("serving sidecars");
        return await_fleet("attach", *leader_);
    }

    bool await_fleet(const char* row, const Replica& replica) {
        const TimePoint begin = SystemClock{}.now();
        const double cpu = replica.use().cpu_seconds;
        const bool attached =
            wait([&] { return fleet_->attached() >= reporting_.size() * 999 / 1000; });
        const double attached_seconds = since(begin);
        const double attached_cpu = replica.use().cpu_seconds - cpu;
        const bool granted =
            wait([&] { return fleet_->granted() >= reporting_.size() * 999 / 1000; });
        const ProcessUse use = replica.use();
        fmt::print(
            R"({{"row":"{}","attached":{},"seconds":{:.1f},"cpu_seconds":{:.1f},"granted":{},"granted_seconds":{:.1f},"granted_cpu_seconds":{:.1f},"memory_mib":{:.0f},"memory_peak_mib":{:.0f},"requests":{}}})"
            "\n",
            row,
            fleet_->attached(),
            attached_seconds,
            attached_cpu,
            fleet_->granted(),
            since(begin),
            use.cpu_seconds - cpu,
            use.memory_mib,
            use.memory_peak_mib,
            requests());
        std::fflush(stdout);
        return attached && granted;
    }

    void steady() {
        const TimePoint begin = SystemClock{}.now();
        const double cpu = leader_->use().cpu_seconds;
        const std::uint64_t reports = fleet_->reports();
        rusage own_before{};
        ::getrusage(RUSAGE_SELF, &own_before);
        std::this_thread::sleep_for(
            std::chrono::seconds{settings_.steady_seconds});  // the measured time
        const ProcessUse use = leader_->use();
        const double seconds = since(begin);
        fmt::print(
            R"({{"row":"steady","cores":{:.3f},"reports_per_second":{:.0f},"memory_mib":{:.0f},"memory_peak_mib":{:.0f},"attached":{},"requests":{}}})"
            "\n",
            (use.cpu_seconds - cpu) / seconds,
            static_cast<double>(fleet_->reports() - reports) / seconds,
            use.memory_mib,
            use.memory_peak_mib,
            fleet_->attached(),
            requests());
        std::fflush(stdout);
    }

    bool fail_over() {
        std::this_thread::sleep_for(std::chrono::seconds{2});  // the standby sees the Lease
        *port_.lock() = 0;
        leader_->kill();
        const TimePoint begin = SystemClock{}.now();
        const double cpu = standby_->use().cpu_seconds;
        if (!wait([&] { return standby_->port("serving sidecars") != 0; })) {
            return false;
        }
        fmt::print(
            R"({{"row":"lease","seconds":{:.1f},"cpu_seconds":{:.1f}}})"
            "\n",
            since(begin),
            standby_->use().cpu_seconds - cpu);
        *port_.lock() = standby_->port("serving sidecars");
        return await_fleet("failover", *standby_);
    }

    template <class Condition>
    bool wait(Condition holds) {
        const TimePoint begin = SystemClock{}.now();
        while (!holds()) {
            if (since(begin) > static_cast<double>(settings_.patience_seconds)) {
                return false;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{100});  // poll
        }
        return true;
    }

    Settings settings_;
    testing::TestCertificates certificates_;
    testing::TokenIssuer tokens_;
    JobLatency latency_;
    FakeApi api_;
    std::vector<PlacedJob> jobs_;
    std::vector<PlacedJob> reporting_;
    std::unique_ptr<Replica> leader_;
    std::unique_ptr<Replica> standby_;
    Guarded<std::uint16_t> port_{std::uint16_t{0}};
    std::unique_ptr<SidecarFleet> fleet_;
};

std::vector<FlagGroup> flag_groups(Settings& settings) {
    ClusterSize& size = settings.size;
    return {
        {"What runs",
         {{"operator", "FILE", "the program under test", text_into(settings.program)}}},
        {"The cluster",
         {{"jobs", "N", "running TrainingJobs", count_into(size.jobs)},
          {"pods", "N", "pods of all jobs together, a multiple of jobs", count_into(size.pods)},
          {"nodes", "N", "nodes", count_into(size.nodes)},
          {"streams", "N", "sidecars that report, at most one per job", count_into(size.streams)}}},
        {"The run",
         {{"backlog-seconds",
           "N",
           "duration of the phase in which new jobs arrive",
           count_into(settings.backlog_seconds)},
          {"steady-seconds",
           "N",
           "duration of the phase in which only reports arrive",
           count_into(settings.steady_seconds)},
          {"report-seconds",
           "N",
           "a sidecar's time between reports",
           count_into(settings.report_seconds)},
          {"patience-seconds",
           "N",
           "the limit for each wait",
           count_into(settings.patience_seconds)}}}};
}

int start(const std::vector<std::string_view>& arguments) {
    Settings settings;
    if (const auto done = begin_program("stoker-bench-scale", flag_groups(settings), arguments)) {
        return *done;
    }
    raise_descriptor_limit();  // one per stream; the operator inherits the limit
    return Run{settings}.run() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

}  // namespace stoker::bench

int main(int argc, char** argv) {
    return stoker::bench::start({argv + 1, argv + argc});
}
