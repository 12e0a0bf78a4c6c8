#include "cli/kubectl_stoker/quota_tree.h"

#include <algorithm>
#include <map>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "cli/kubectl_stoker/table.h"

namespace stoker::cli {

namespace {

using control::CachePool;
using control::CacheQuota;
using control::TrainingJob;
using web::json::value;

std::string bytes_text(std::int64_t count) {
    return to_string(Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0))});
}

std::string bytes_or_nothing(std::int64_t count) {
    return count > 0 ? bytes_text(count) : "";
}

// One namespace in one pool.
struct Branch {
    const CacheQuota* quota = nullptr;  // null: no quota; the pool's defaultQuota applies
    std::vector<const TrainingJob*> jobs;
};

struct Tree {
    const CachePool* pool = nullptr;  // null: not readable
    std::map<std::string, Branch> branches;
};

bool holds_bytes(const TrainingJob& job) {
    return job.status.cache && !job.status.cache->pool.empty() &&
           !control::is_true(job.status.conditions, "Finished");
}

std::map<std::string, Tree> make_trees(const QuotaFacts& facts) {
    std::map<std::string, Tree> trees;
    for (const CachePool& pool : facts.pools) {
        trees[pool.meta.name].pool = &pool;
    }
    for (const CacheQuota& quota : facts.quotas) {
        const CacheQuota*& shown = trees[quota.spec.pool_ref].branches[quota.meta.ns].quota;
        // If two quotas name one pool, shows the active one.
        if (shown == nullptr || control::is_true(quota.status.conditions, "Active")) {
            shown = &quota;
        }
    }
    for (const TrainingJob& job : facts.jobs) {
        if (holds_bytes(job)) {
            trees[job.status.cache->pool].branches[job.meta.ns].jobs.push_back(&job);
        }
    }
    for (auto& [name, tree] : trees) {
        for (auto& [ns, branch] : tree.branches) {
            std::ranges::sort(branch.jobs, [](const TrainingJob* a, const TrainingJob* b) {
                return a->status.cache->allocated_bytes > b->status.cache->allocated_bytes;
            });
        }
    }
    return trees;
}

std::int64_t granted_to(const Branch& branch) {
    std::int64_t sum = 0;
    for (const TrainingJob* job : branch.jobs) {
        sum += job->status.cache->allocated_bytes;
    }
    return sum;
}

// The reason why a quota is not in force.
std::string state_of(const CacheQuota& quota) {
    const auto* active = control::find_condition(quota.status.conditions, "Active");
    if (active == nullptr || active->status == control::ConditionStatus::kTrue) {
        return "";
    }
    return active->reason;
}

void add_pool(Table& table, const std::string& name, const Tree& tree) {
    if (tree.pool == nullptr) {
        table.add({name, "", "", "", "", "", ""});
        return;
    }
    const control::CachePoolStatus& status = tree.pool->status;
    table.add(
        {name,
         bytes_text(status.capacity_bytes),
         bytes_text(status.granted_bytes),
         "",
         "",
         status.capacity_bytes > 0 ? fmt::format(
                                         "{:.0f}%",
                                         100 * static_cast<double>(status.granted_bytes) /
                                             static_cast<double>(status.capacity_bytes))
                                   : "",
         fmt::format("{} of {} nodes ready", status.nodes_ready, status.nodes_total)});
}

void add_branch(Table& table, const std::string& ns, const Branch& branch, bool last) {
    const std::string name = (last ? "└─ " : "├─ ") + ns;
    if (branch.quota == nullptr) {
        table.add({name, "", bytes_text(granted_to(branch)), "", "", "", "no quota"});
    } else {
        const control::CacheQuotaStatus& status = branch.quota->status;
        table.add(
            {name,
             to_string(branch.quota->spec.nominal_quota),
             bytes_text(status.used_bytes),
             bytes_or_nothing(status.borrowed_bytes),
             bytes_or_nothing(status.lent_bytes),
             status.columns.share,
             state_of(*branch.quota)});
    }
    for (std::size_t i = 0; i < branch.jobs.size(); ++i) {
        const TrainingJob& job = *branch.jobs[i];
        const auto* why = control::find_condition(job.status.conditions, "CacheAllocated");
        table.add(
            {fmt::format(
                 "{}{} tj/{}",
                 last ? "   " : "│  ",
                 i + 1 == branch.jobs.size() ? "└─" : "├─",
                 job.meta.name),
             "",
             bytes_text(job.status.cache->allocated_bytes),
             bytes_or_nothing(job.status.cache->borrowed_bytes),
             "",
             "",
             why == nullptr ? "" : why->reason});
    }
}

value branch_json(const std::string& ns, const Branch& branch) {
    value json = value::object(true);
    json["namespace"] = value::string(ns);
    if (branch.quota != nullptr) {
        const control::CacheQuotaStatus& status = branch.quota->status;
        json["quota"] = value::string(branch.quota->meta.name);
        json["nominalBytes"] = value::number(branch.quota->spec.nominal_quota.count());
        json["usedBytes"] = value::number(status.used_bytes);
        json["borrowedBytes"] = value::number(status.borrowed_bytes);
        json["lentBytes"] = value::number(status.lent_bytes);
        json["weightedShare"] = value::number(status.weighted_share);
    }
    value jobs = value::array();
    for (const TrainingJob* job : branch.jobs) {
        value item = value::object(true);
        item["name"] = value::string(job->meta.name);
        item["grantedBytes"] = value::number(job->status.cache->allocated_bytes);
        item["borrowedBytes"] = value::number(job->status.cache->borrowed_bytes);
        jobs[jobs.size()] = item;
    }
    json["jobs"] = jobs;
    return json;
}

}  // namespace

std::string quota_text(const QuotaFacts& facts) {
    using enum Table::Align;
    Table table(
        {{"POOL/NAMESPACE/JOB"},
         {"NOMINAL", kRight},
         {"USED", kRight},
         {"BORROWED", kRight},
         {"LENT", kRight},
         {"SHARE", kRight},
         {"STATE"}});
    for (const auto& [name, tree] : make_trees(facts)) {
        add_pool(table, name, tree);
        std::size_t left = tree.branches.size();
        for (const auto& [ns, branch] : tree.branches) {
            add_branch(table, ns, branch, --left == 0);
        }
    }
    return table.text();
}

std::string quota_json(const QuotaFacts& facts) {
    value pools = value::array();
    for (const auto& [name, tree] : make_trees(facts)) {
        value json = value::object(true);
        json["pool"] = value::string(name);
        if (tree.pool != nullptr) {
            json["capacityBytes"] = value::number(tree.pool->status.capacity_bytes);
            json["grantedBytes"] = value::number(tree.pool->status.granted_bytes);
        }
        value namespaces = value::array();
        for (const auto& [ns, branch] : tree.branches) {
            namespaces[namespaces.size()] = branch_json(ns, branch);
        }
        json["namespaces"] = namespaces;
        pools[pools.size()] = json;
    }
    value root = value::object(true);
    root["pools"] = pools;
    return root.serialize() + "\n";
}

}  // namespace stoker::cli
