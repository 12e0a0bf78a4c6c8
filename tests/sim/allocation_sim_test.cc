// The planner among sidecars that are slow, deaf or stubborn, with messages late or lost, two
// leaders for a while, jobs that come and go, profiles that are wrong, and nodes that vanish.
// Safety holds at every tick; when the faults stop, everything comes to rest.

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/core/allocation/plan_allocation.h"
#include "tests/unit/operator/core/test_seed.h"

namespace stoker::control {
namespace {

constexpr const char* kPool = "p";
constexpr int kSeeds = 2000;
constexpr int kFaultTicks = 40;
constexpr int kCalmTicks = 60;

using Place = std::pair<std::string, std::string>;  // node, uid

struct Sidecar {
    Bytes resident{};
    Bytes granted{};
    int leader = 0;         // which operator it is attached to
    bool stubborn = false;  // does not shrink
};

struct Message {
    int due = 0;
    Place place;
    Bytes granted{};
    Bytes resident{};
};

// What one operator remembers.
struct Operator {
    bool leads = false;
    std::map<Place, Bytes> sent;                    // last grants
    std::map<Place, Bytes> believed;                // the most that a sidecar may hold for granted
    std::map<Place, std::pair<Bytes, Bytes>> told;  // resident, granted
    std::deque<Message> reports;                    // on their way
    std::deque<Message> grants;
};

class World {
public:
    explicit World(std::uint64_t seed)
        : prng_(seed) {
        for (std::uint64_t i = 0; i < 1 + prng_.below(3); ++i) {
            nodes_.push_back({kPool, "n" + std::to_string(i), Bytes{20 + prng_.below(80)}});
        }
        for (std::uint64_t i = 0; i < 3; ++i) {
            QuotaView quota{"ns" + std::to_string(i), kPool, Bytes{prng_.below(120)}};
            quota.borrowing = Bytes{prng_.below(60)};
            quota.lending = Bytes{prng_.below(100)};
            quotas_.push_back(quota);
        }
        objective_ = static_cast<Objective>(prng_.below(3));
        operators_[0].leads = true;
    }

    void tick(bool faults) {
        ++now_;
        if (faults) {
            disturb();
        } else {
            heal();
        }
        sync_sidecars();
        report(faults);
        for (Operator& it : operators_) {
            receive(it);
            if (it.leads) {
                plan(it, faults);
            }
        }
        deliver_grants();
        work();
    }

    // Of every tick: nothing is where it may not be.
    void expect_safe() const {
        std::map<std::string, Bytes> on_node;
        std::map<std::string, Bytes> in_ns;
        for (const auto& [place, sidecar] : sidecars_) {
            on_node[place.first] += sidecar.resident;
            in_ns[place.second.substr(0, 3)] += sidecar.resident;
        }
        for (const PoolNode& node : nodes_) {
            EXPECT_LE(on_node[node.node], node.capacity) << node.node << " at " << now_;
        }
        Bytes borrowed{};
        Bytes lendable{};
        for (const QuotaView& quota : quotas_) {
            EXPECT_LE(in_ns[quota.ns], quota.nominal + quota.borrowing)
                << quota.ns << " at " << now_;
            borrowed += in_ns[quota.ns] - quota.nominal;
            lendable += std::min(quota.lending, quota.nominal - in_ns[quota.ns]);
        }
        EXPECT_LE(borrowed, lendable) << "at " << now_;
    }

    // After the calm: grants are carried out, nothing moves, minimums that fit are there.
    void expect_rest() {
        const std::map<Place, Sidecar> before = sidecars_;
        for (int i = 0; i < 5; ++i) {
            tick(false);
        }
        for (const auto& [place, sidecar] : sidecars_) {
            EXPECT_EQ(sidecar.granted, before.at(place).granted) << place.first << place.second;
            EXPECT_LE(sidecar.resident, sidecar.granted) << place.first << place.second;
        }
        AllocationView fresh = view_of(operators_[leader()]);
        fresh.holdings.clear();
        const AllocationPlan ideal = plan_allocation(fresh);
        for (const JobAllocation& job : ideal.jobs) {
            for (const Demand& demand : jobs_) {
                if (demand.job == job.job && demand.min_bytes > Bytes::zero()) {
                    EXPECT_GE(held(demand), std::min(promised(demand), job.granted)) << job.message;
                }
            }
        }
    }

private:
    [[nodiscard]] std::size_t leader() const { return operators_[1].leads ? 1 : 0; }

    // Bytes that the job's sidecars are granted.
    [[nodiscard]] Bytes held(const Demand& job) const {
        Bytes sum{};
        for (const std::string& node : job.nodes) {
            if (const auto it = sidecars_.find({node, job.datasets[0].uid});
                it != sidecars_.end()) {
                sum += std::min(it->second.granted, *job.datasets[0].total);
            }
        }
        return sum;
    }

    // The minimum of a job alone in its namespace and on its nodes, which nothing can keep from it.
    [[nodiscard]] Bytes promised(const Demand& job) const {
        for (const Demand& other : jobs_) {
            const bool apart = other.job == job.job || other.min_bytes == Bytes::zero();
            if (!apart) {
                return Bytes::zero();
            }
        }
        const auto parts = static_cast<std::uint64_t>(job.nodes.size());
        Bytes sum{};
        for (const PoolNode& node : nodes_) {
            if (std::find(job.nodes.begin(), job.nodes.end(), node.node) != job.nodes.end()) {
                sum += std::min(
                    {Bytes{job.min_bytes.count() / parts}, node.capacity, *job.datasets[0].total});
            }
        }
        const auto quota = std::find_if(quotas_.begin(), quotas_.end(), [&](const QuotaView& it) {
            return it.ns == job.job.ns;
        });
        return std::min(sum, quota->nominal);
    }

    void disturb() {
        if (prng_.below(4) == 0) {
            add_job();
        }
        if (prng_.below(8) == 0 && !jobs_.empty()) {
            jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(prng_.below(jobs_.size())));
        }
        if (prng_.below(6) == 0 && !jobs_.empty()) {
            Demand& job = jobs_[prng_.below(jobs_.size())];
            job.rates = JobRates{
                1000 * prng_.unit() - 10, 300 * prng_.unit(), prng_.unit(), prng_.below(5) == 0};
        }
        for (auto& entry : sidecars_) {
            if (prng_.below(10) == 0) {
                entry.second.stubborn = !entry.second.stubborn;
            }
        }
        if (prng_.below(15) == 0) {
            start_second_leader();
        }
        if (prng_.below(40) == 0 && nodes_.size() > 1) {
            lose_node();
        }
    }

    void heal() {
        for (auto& entry : sidecars_) {
            entry.second.stubborn = false;
        }
        if (operators_[0].leads && operators_[1].leads) {
            operators_[1 - newest_] = Operator{};
        }
    }

    // The older one does not know yet, and goes on for a while.
    void start_second_leader() {
        if (operators_[0].leads && operators_[1].leads) {
            operators_[1 - newest_] = Operator{};
            return;
        }
        newest_ = 1 - leader();
        operators_[newest_] = Operator{};
        operators_[newest_].leads = true;
    }

    void lose_node() {
        const std::string lost = nodes_.back().node;
        nodes_.pop_back();
        for (Demand& job : jobs_) {
            std::erase(job.nodes, lost);
        }
        std::erase_if(jobs_, [](const Demand& job) { return job.nodes.empty(); });
        std::erase_if(sidecars_, [&](const auto& entry) { return entry.first.first == lost; });
    }

    void add_job() {
        Demand job;
        const std::string ns = "ns" + std::to_string(prng_.below(3));
        const std::uint64_t file = prng_.below(4);
        job.job = {ns, "job" + std::to_string(++job_count_)};
        job.created_at = WallTime{std::chrono::seconds{now_}};
        job.pool = kPool;
        job.datasets = {{"train", ns + std::to_string(file), Bytes{10 + 20 * file}}};
        for (const PoolNode& node : nodes_) {
            if (prng_.below(3) != 0) {
                job.nodes.push_back(node.node);
            }
        }
        if (job.nodes.empty()) {
            return;
        }
        job.min_bytes = Bytes{prng_.below(4) == 0 ? prng_.below(20) : 0};
        if (prng_.below(3) != 0) {
            job.rates = JobRates{100 * prng_.unit(), 50 * prng_.unit(), prng_.unit(), false};
        }
        jobs_.push_back(job);
    }

    // A sidecar for each dataset of a job on a node. Where no job is left, the data stay until the
    // sweeper has been there, which is at once here.
    void sync_sidecars() {
        std::set<Place> wanted;
        for (const Demand& job : jobs_) {
            for (const std::string& node : job.nodes) {
                wanted.insert({node, job.datasets[0].uid});
            }
        }
        std::erase_if(sidecars_, [&](const auto& entry) { return !wanted.contains(entry.first); });
        // Streams end with their pods.
        for (Operator& it : operators_) {
            const auto is_gone = [&](const Message& message) {
                return !sidecars_.contains(message.place);
            };
            std::erase_if(it.grants, is_gone);
            std::erase_if(it.reports, is_gone);
            std::erase_if(it.told, [&](const auto& e) { return !sidecars_.contains(e.first); });
            std::erase_if(it.sent, [&](const auto& e) { return !sidecars_.contains(e.first); });
            std::erase_if(it.believed, [&](const auto& e) { return !sidecars_.contains(e.first); });
        }
        for (const Place& place : wanted) {
            if (sidecars_.emplace(place, Sidecar{}).second) {
                sidecars_[place].leader = static_cast<int>(leader());
            }
        }
    }

    void report(bool faults) {
        for (auto& [place, sidecar] : sidecars_) {
            const bool dead = !operators_[static_cast<std::size_t>(sidecar.leader)].leads;
            if (dead || (operators_[newest_].leads && prng_.below(4) == 0)) {
                const int next = static_cast<int>(operators_[newest_].leads ? newest_ : leader());
                if (next != sidecar.leader) {
                    // What was on its way on the old stream is lost with it.
                    Operator& old = operators_[static_cast<std::size_t>(sidecar.leader)];
                    const Place here = place;
                    std::erase_if(old.grants, [&](const Message& it) { return it.place == here; });
                    sidecar.leader = next;
                }
            }
            if (!faults || prng_.below(3) != 0) {
                operators_[static_cast<std::size_t>(sidecar.leader)].reports.push_back(
                    {now_ + delay(faults), place, sidecar.granted, sidecar.resident});
            }
        }
    }

    int delay(bool faults) { return faults ? static_cast<int>(prng_.below(3)) : 0; }

    // In order: one stream a sidecar.
    void receive(Operator& it) {
        while (!it.reports.empty() && it.reports.front().due <= now_) {
            const Message& report = it.reports.front();
            it.told[report.place] = {report.resident, report.granted};
            if (it.sent.contains(report.place) && it.sent[report.place] == report.granted) {
                it.believed[report.place] = report.granted;
            }
            it.reports.pop_front();
        }
    }

    AllocationView view_of(Operator& it) {
        AllocationView view;
        view.nodes = nodes_;
        view.quotas = quotas_;
        view.demands = jobs_;
        PoolView pool;
        pool.pool = kPool;
        pool.objective = objective_;
        view.pools = {pool};
        for (const auto& [place, sidecar] : sidecars_) {
            // One that is attached elsewhere may be granted anything by now.
            view.settled =
                view.settled && &operators_[static_cast<std::size_t>(sidecar.leader)] == &it;
            if (!it.told.contains(place)) {
                // Nobody has heard of it: somebody else may have granted it something.
                view.settled = view.settled && it.sent.contains(place);
                if (!it.sent.contains(place)) {
                    continue;
                }
            }
            const auto [resident, granted] = it.told[place];
            Holding holding{kPool, place.first, place.second, resident, granted};
            holding.outstanding = std::max(granted, it.believed[place]);
            if (it.sent.contains(place)) {
                holding.granted = it.sent[place];
                holding.in_flight = it.sent[place] != granted;
            }
            view.holdings.push_back(holding);
        }
        return view;
    }

    void plan(Operator& it, bool faults) {
        const AllocationPlan plan = plan_allocation(view_of(it));
        for (const AgentGrant& grant : plan.grants) {
            const Place place{grant.node, grant.dataset_uid};
            const bool attached =
                &operators_[static_cast<std::size_t>(sidecars_.at(place).leader)] == &it;
            if (!attached || !it.told.contains(place)) {
                continue;
            }
            it.sent[place] = grant.resident_bytes;
            it.believed[place] = std::max(it.believed[place], grant.resident_bytes);
            it.grants.push_back({now_ + delay(faults), place, grant.resident_bytes, {}});
        }
    }

    void deliver_grants() {
        for (Operator& it : operators_) {
            while (!it.grants.empty() && it.grants.front().due <= now_) {
                const Message& grant = it.grants.front();
                if (const auto at = sidecars_.find(grant.place); at != sidecars_.end()) {
                    at->second.granted = grant.granted;
                }
                it.grants.pop_front();
            }
        }
    }

    // Sidecars fill up or give back, a few bytes a tick.
    void work() {
        for (auto& entry : sidecars_) {
            Sidecar& it = entry.second;
            const Bytes some{1 + prng_.below(20)};
            if (it.resident < it.granted) {
                it.resident = std::min(it.granted, it.resident + some);
            } else if (!it.stubborn) {
                it.resident = std::max(it.granted, it.resident - some);
            }
        }
    }

    Prng prng_;
    int now_ = 0;
    int job_count_ = 0;
    Objective objective_ = Objective::kThroughput;
    std::vector<PoolNode> nodes_;
    std::vector<QuotaView> quotas_;
    std::vector<Demand> jobs_;
    std::map<Place, Sidecar> sidecars_;
    std::array<Operator, 2> operators_;
    std::size_t newest_ = 0;
};

TEST(AllocationSim, IsSafeAtEveryTickAndComesToRest) {
    const std::uint64_t seed = test_seed();
    for (int round = 0; round < kSeeds && !::testing::Test::HasFailure(); ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        World world{seed + static_cast<std::uint64_t>(round)};
        for (int i = 0; i < kFaultTicks && !::testing::Test::HasFailure(); ++i) {
            world.tick(true);
            world.expect_safe();
        }
        for (int i = 0; i < kCalmTicks && !::testing::Test::HasFailure(); ++i) {
            world.tick(false);
            world.expect_safe();
        }
        world.expect_rest();
    }
}

}  // namespace
}  // namespace stoker::control
