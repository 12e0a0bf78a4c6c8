#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "operator/core/allocation/plan_allocation.h"
#include "tests/sim/allocation_actors.h"
#include "tests/sim/allocation_charges.h"
#include "tests/support/promised_minimums.h"

// The simulated cluster of allocation_sim_test.cc, and its invariants.
namespace stoker::control {

class World {
public:
    // `shared`: jobs may also read datasets of other namespaces.
    World(std::uint64_t seed, bool shared)
        : prng_(seed),
          shared_(shared) {
        for (std::uint64_t i = 0; i < 1 + prng_.below(3); ++i) {
            nodes_.push_back({kPool, "n" + std::to_string(i), Bytes{20 + prng_.below(80)}});
        }
        for (std::uint64_t i = 0; i < 3; ++i) {
            QuotaView quota{"ns" + std::to_string(i), kPool, Bytes{prng_.below(120)}};
            quota.borrowing = limit(60);
            quota.lending = limit(100);
            quota.reclaim = static_cast<ReclaimPolicy>(prng_.below(3));
            quotas_.push_back(quota);
        }
        pool_.pool = kPool;
        pool_.objective = static_cast<Objective>(prng_.below(4));
        // In half of the worlds the last namespace has no CacheQuota, only the pool's default
        // quota, all of which it lends: a namespace that has no CacheQuota yet withholds no bytes.
        if (prng_.below(2) == 0) {
            quotas_[2].reclaim = ReclaimPolicy::kAny;
            quotas_[2].lending = Bytes::unlimited();
            pool_.default_quota = {quotas_[2].nominal, quotas_[2].borrowing, quotas_[2].lending};
        }
        has_default_ = pool_.default_quota != DefaultQuota{};
        unnamed_ = unnamed_bytes(nodes_, quotas_);
        operators_[0].leads = true;
    }

    void tick(bool faults) {
        ++now_;
        settled_ = false;
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
        end_overlap();
        deliver_grants();
        work();
    }

    // Checked at every tick: no node or account exceeds its limit.
    void expect_safe() const {
        std::map<std::string, Bytes> on_node;
        for (const auto& [place, sidecar] : sidecars_) {
            on_node[place.first] += sidecar.resident;
        }
        for (const PoolNode& node : nodes_) {
            EXPECT_LE(on_node[node.node], node.capacity) << node.node << " at " << now_;
        }
        expect_within(
            paid_for(possible(sidecars_, operators_, now_)),
            quotas_,
            unnamed_,
            "at " + std::to_string(now_));
    }

    // Checked after the faults stop: grants are carried out, no bytes move, minimums are held.
    void expect_rest() {
        const std::map<Place, Sidecar> before = sidecars_;
        for (int i = 0; i < 5; ++i) {
            tick(false);
        }
        for (const auto& [place, sidecar] : sidecars_) {
            EXPECT_EQ(sidecar.granted, before.at(place).granted)
                << place.first << place.second << ", objective "
                << static_cast<int>(pool_.objective);
            EXPECT_LE(sidecar.resident, sidecar.granted) << place.first << place.second;
        }
        EXPECT_TRUE(settled_);
        expect_minimums_where_settled();
    }

    // Once the plan is stable, every job holds its promised minimum.
    bool expect_minimums_where_settled() const {
        if (settled_) {
            expect_minimums();
        }
        return settled_;
    }

private:
    Bytes limit(std::uint64_t most) {
        return prng_.below(4) == 0 ? Bytes::unlimited() : Bytes{prng_.below(most)};
    }

    [[nodiscard]] AllocationView objects() const {
        AllocationView view;
        view.nodes = nodes_;
        view.quotas = quotas_;
        view.quotas.resize(has_default_ ? 2 : 3);
        view.demands = jobs_;
        view.pools = {pool_};
        return view;
    }

    void expect_minimums() const {
        const PromisedMinimums promised = promised_minimums(objects());
        for (const Demand& job : jobs_) {
            EXPECT_GE(held(job).count(), promised.jobs.at(job.job))
                << to_string(job.job) << " at " << now_ << ", objective "
                << static_cast<int>(pool_.objective);
        }
    }

    [[nodiscard]] std::size_t leader() const { return operators_[1].leads ? 1 : 0; }

    // Bytes granted to the job's sidecars.
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
            if (prng_.below(60) == 0) {
                cut(entry.first, entry.second, now_ + static_cast<int>(prng_.below(40)));
            }
            // No restart while two operators lead: the status lacks reports to the older one.
            if (prng_.below(100) == 0 && operators_[0].leads != operators_[1].leads) {
                restart(entry.first, entry.second);
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
            entry.second.cut_until = 0;
        }
        if (operators_[0].leads && operators_[1].leads) {
            operators_[1 - newest_] = Operator{};
        }
    }

    // Ends the stream and drops its messages in flight, in both directions.
    void cut(const Place& place, Sidecar& sidecar, int until) {
        sidecar.cut_until = until;
        sidecar.leader = kNobody;
        const auto is_its = [&](const Message& message) { return message.place == place; };
        std::ranges::for_each(operators_, [&](Operator& it) { lose_messages(it, is_its); });
    }

    // The sidecar forgets its grant, and lists the origin before it scans its directory.
    void restart(const Place& place, Sidecar& sidecar) {
        cut(place, sidecar, now_);
        status_[place].resident = sidecar.resident;  // the API server has the value at once here
        begin_anew(sidecar, now_ + static_cast<int>(prng_.below(20)));
    }

    // The older leader continues for a while, unaware of the newer one.
    void start_second_leader() {
        if (operators_[0].leads && operators_[1].leads) {
            return;
        }
        const std::size_t old = leader();
        operators_[old].replaced_at = now_;
        newest_ = 1 - old;
        operators_[newest_] = Operator{};
        operators_[newest_].leads = true;
    }

    void end_overlap() {
        Operator& old = operators_[1 - newest_];
        if (old.leads && operators_[newest_].leads && now_ - old.replaced_at >= kOverlapTicks) {
            old = Operator{};
        }
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
        const std::string owner = shared_ ? "ns" + std::to_string(prng_.below(2)) : ns;
        job.datasets = {{"train", owner + std::to_string(file), Bytes{10 + 20 * file}}};
        job.datasets[0].ns = owner;
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

    // Keeps one sidecar for each dataset of a job on a node. Bytes without a job stay until swept,
    // which happens at once here.
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
            lose_messages(it, is_gone);
            std::erase_if(it.told, [&](const auto& e) { return !sidecars_.contains(e.first); });
        }
        std::erase_if(status_, [&](const auto& entry) { return !wanted.contains(entry.first); });
        for (const Place& place : wanted) {
            sidecars_.emplace(place, Sidecar{});
        }
    }

    void report(bool faults) {
        for (auto& [place, sidecar] : sidecars_) {
            if (now_ < sidecar.cut_until) {
                continue;
            }
            attach(place, sidecar);
            Operator& leader = operators_[static_cast<std::size_t>(sidecar.leader)];
            if (!faults || prng_.below(3) != 0) {
                leader.reports.push_back(report_of(place, sidecar, now_, delay(faults)));
            }
        }
    }

    // Attaches to the newest leader once the old one is gone, or at random. Messages in flight on
    // the old stream are lost.
    void attach(const Place& place, Sidecar& sidecar) {
        const bool dead = sidecar.leader == kNobody ||
                          !operators_[static_cast<std::size_t>(sidecar.leader)].leads;
        const int next = static_cast<int>(operators_[newest_].leads ? newest_ : leader());
        if (next != sidecar.leader && (dead || prng_.below(4) == 0)) {
            cut(place, sidecar, 0);
            sidecar.leader = next;
        }
    }

    int delay(bool faults) { return faults ? static_cast<int>(prng_.below(3)) : 0; }

    // Delivers in order: one stream per sidecar.
    void receive(Operator& it) {
        while (!it.reports.empty() && it.reports.front().due <= now_) {
            const Message& report = it.reports.front();
            it.told[report.place] = {report.resident, report.granted, now_, report.opening};
            if (!report.opening) {
                status_[report.place].resident = report.resident;
            }
            it.reports.pop_front();
        }
    }

    [[nodiscard]] bool is_fresh(const Told& told) const { return now_ - told.at <= kReportTicks; }

    // GrantBook's input, as find_places() builds it from a cluster.
    std::vector<ObservedResidency> words_for(Operator& it) {
        std::vector<ObservedResidency> words;
        for (const auto& [place, sidecar] : sidecars_) {
            ObservedResidency word;
            word.pool = kPool;
            word.node = place.first;
            word.dataset_uid = place.second;
            word.ns = place.second.substr(0, 3);
            word.live = true;
            word.reached = sidecar.leader == &it - operators_.data();
            word.leader_attached = word.reached;
            const auto told = it.told.find(place);
            if (told != it.told.end() && is_fresh(told->second)) {
                word.opening = told->second.opening;
                word.resident = word.opening ? status_[place].resident : told->second.resident;
                word.granted = told->second.granted;
            } else if (const auto known = status_.find(place); known != status_.end()) {
                word.promised = known->second.granted;
                word.resident = known->second.resident;
            }
            words.push_back(word);
        }
        return words;
    }

    AllocationView view_of(Operator& it) {
        AllocationView view = objects();
        it.book.observe(words_for(it), at(now_));
        view.holdings = it.book.holdings();
        view.settled = it.book.is_settled(at(now_));
        for (const Reclaim& late : it.reclaims.late()) {
            view.held_back.push_back({kPool, late.ns, "late"});
        }
        return view;
    }

    // Whether the only leader knows the state and plans no change.
    [[nodiscard]] bool is_settled(
        const Operator& it, const AllocationView& view, const AllocationPlan& plan) const {
        const bool alone = !operators_[0].leads || !operators_[1].leads;
        if (!alone || !view.settled || !view.held_back.empty() || !it.grants.empty()) {
            return false;
        }
        for (const Grant& grant : plan.grants) {
            const Place place{grant.node, grant.dataset_uid};
            const Sidecar& sidecar = sidecars_.at(place);
            const auto told = it.told.find(place);
            if (told == it.told.end() || !is_fresh(told->second) || told->second.opening ||
                told->second.resident != sidecar.resident ||
                told->second.granted != sidecar.granted || sidecar.resident > sidecar.granted ||
                grant.resident_bytes != sidecar.granted) {
                return false;
            }
        }
        return plan.grants.size() == sidecars_.size();
    }

    void plan(Operator& it, bool faults) {
        const AllocationView view = view_of(it);
        const AllocationPlan plan = plan_allocation(view);
        settled_ = is_settled(it, view, plan);
        it.reclaims.watch(plan.reclaims, at(now_));
        for (const Grant& grant : it.book.take(plan)) {
            const Place place{grant.node, grant.dataset_uid};
            const int attached = sidecars_.at(place).leader;
            if (attached != kNobody && &operators_[static_cast<std::size_t>(attached)] == &it) {
                it.grants.push_back({now_ + delay(faults), place, grant.resident_bytes});
            }
        }
        for (const Holding& holding : it.book.holdings()) {
            status_[{holding.node, holding.dataset_uid}].granted = holding.outstanding;
        }
    }

    void deliver_grants() {
        for (Operator& it : operators_) {
            while (!it.grants.empty() && it.grants.front().due <= now_) {
                const Message& grant = it.grants.front();
                if (const auto sidecar = sidecars_.find(grant.place); sidecar != sidecars_.end()) {
                    sidecar->second.granted = grant.granted;
                    sidecar->second.granted_until = now_ + kGrantTicks;
                }
                it.grants.pop_front();
            }
        }
    }

    // Sidecars add or remove a few bytes per tick.
    void work() {
        for (auto& entry : sidecars_) {
            Sidecar& it = entry.second;
            const Bytes some{1 + prng_.below(20)};
            if (now_ < it.opens_at) {
                continue;
            }
            if (it.resident < it.granted) {
                // No new bytes once the grant has expired.
                it.resident = now_ >= it.granted_until ? it.resident
                                                       : std::min(it.granted, it.resident + some);
            } else if (!it.stubborn) {
                it.resident = std::max(it.granted, it.resident - some);
            }
        }
    }

    Prng prng_;
    bool shared_;
    int now_ = 0;
    int job_count_ = 0;
    bool settled_ = false;  // at the last tick
    PoolView pool_;
    bool has_default_ = false;
    Bytes unnamed_{};  // at the start: nodes may be lost later
    std::vector<PoolNode> nodes_;
    std::vector<QuotaView> quotas_;
    std::vector<Demand> jobs_;
    std::map<Place, Sidecar> sidecars_;
    std::map<Place, Remembered> status_;
    std::array<Operator, 2> operators_;
    std::size_t newest_ = 0;
};

}  // namespace stoker::control
