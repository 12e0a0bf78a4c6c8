// The planner's prediction for nodes that fetch from each other against the traffic of real sidecars
// in the simulated world.
#include <fmt/core.h>

#include "common/base/prng.h"
#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/claim_value.h"
#include "tests/world/scenario.h"

namespace stoker::world {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kSamplesPerNode = 500;

struct Measured {
    double origin_share = 0;  // fetches from the origin per read
    Bytes records{};          // of the dataset
};

class PooledPlan : public Scenario {
protected:
    // One exact job with a rank on each node, each of which keeps `grant`. Measured over whole epochs
    // after the first.
    Measured measure(std::size_t nodes, Bytes grant) {
        const std::uint64_t samples = kSamplesPerNode * nodes;
        Script script;
        script.samples = samples;
        script.grant = grant;
        script.window = kib(128);
        script.origin_bytes_per_second = 1e8;
        script.has_peers = true;
        script.trainers_wait = seconds{10};
        World& world = make({.nodes = nodes, .jobs = 1, .pods = nodes}, script);
        wait_for_epoch(world, 1);
        const std::uint64_t before = world.count("fetches");
        const std::uint64_t epoch = world.epoch(0);
        wait_for_epoch(world, epoch + 2);
        const auto fetched = static_cast<double>(world.count("fetches") - before);
        const auto reads = static_cast<double>((world.epoch(0) - epoch) * samples);
        const sidecar::LeaderStatus status = world.status(0);
        return {fetched / reads, domain::records_bytes_max(status.total_bytes, samples)};
    }

private:
    void wait_for_epoch(World& world, std::uint64_t epoch) {
        for (int i = 0; i < 4000 && world.epoch(0) < epoch; ++i) {
            run_for(std::chrono::milliseconds{50});
        }
        ASSERT_GE(world.epoch(0), epoch);
    }
};

// Share of the reads that the origin serves, as the planner predicts.
double planned(std::size_t nodes, Bytes grant, Bytes total) {
    control::AllocationView view;
    control::Demand job;
    job.job = {"research", "job"};
    job.pool = "nvme";
    job.datasets = {{"train", "uid-train", total}};
    job.rates = control::JobRates{1e6, 0};
    view.peers = {{"uid-train", {}}};
    for (std::size_t i = 0; i < nodes; ++i) {
        view.nodes.push_back({"nvme", World::node_name(i), gib(1)});
        job.nodes.push_back(World::node_name(i));
        view.peers[0].nodes.push_back(World::node_name(i));
    }
    view.demands = {job};
    const auto tables = control::make_claim_tables(view);
    double fetched = 0;
    for (const control::Claim& claim : tables.at("nvme").claims) {
        const control::ClaimUser& user = claim.users.at(0);
        fetched += user.rate * control::fetched_with(tables.at("nvme"), user, grant) / 1e6;
    }
    return fetched;
}

TEST_F(PooledPlan, PredictsTheOriginsShareWithinFivePercent) {
    Prng prng{first_seed()};
    for (const std::size_t nodes : {2U, 3U, 8U}) {
        const double share = .2 + .3 * prng.unit();
        const Bytes grant{static_cast<std::uint64_t>(share * kSamplesPerNode * 10'000.0)};
        const Measured measured = measure(nodes, grant);
        const double plan = planned(nodes, grant, measured.records);
        fmt::print(
            "{} nodes: {:.4f} planned, {:.4f} measured\n", nodes, plan, measured.origin_share);
        EXPECT_NEAR(plan, measured.origin_share, .05 * measured.origin_share) << nodes;
    }
}

}  // namespace
}  // namespace stoker::world
