#include "cli/kubectl_stoker/what_if.h"

#include <algorithm>
#include <tuple>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "cli/kubectl_stoker/curve_plot.h"
#include "cli/kubectl_stoker/table.h"

namespace stoker::cli {

namespace {

using control::Change;
using control::JobAllocation;
using web::json::value;

double gain(const WhatIfRow& row) {
    return row.after.numbers.rate - row.before.numbers.rate;
}

// Formats a relative change: "+12%", "-3%", "same".
std::string difference(double before, double after) {
    if (before <= 0) {
        return "";
    }
    const double percent = (after / before - 1) * 100;
    return std::abs(percent) < 0.5 ? "same" : fmt::format("{:+.0f}%", percent);
}

std::string rate_or_nothing(double rate) {
    return rate > 0 ? rate_text(rate) : "";
}

value side_json(const JobAllocation& allocation) {
    value json = value::object(true);
    json["grantedBytes"] = value::number(allocation.granted.count());
    json["wantedBytes"] = value::number(allocation.wanted.count());
    json["reason"] = value::string(std::string{to_string(allocation.reason)});
    json["bytesPerSecond"] = value::number(allocation.numbers.rate);
    return json;
}

}  // namespace

std::vector<Change> changes_of(const Options& options, const std::string& ns) {
    std::vector<Change> result;
    if (options.add) {
        result.emplace_back(control::AddCapacity{options.pool, *options.add, false});
    }
    if (options.remove) {
        result.emplace_back(control::AddCapacity{options.pool, *options.remove, true});
    }
    for (const std::string& name : options.deleted) {
        result.emplace_back(control::RemoveJob{key_of(name, ns)});
    }
    for (const NominalOption& quota : options.nominal) {
        result.emplace_back(control::SetNominal{quota.ns, options.pool, quota.nominal});
    }
    return result;
}

Result<WhatIf> what_if(const control::AllocationView& view, const std::vector<Change>& changes) {
    WhatIf result;
    const control::Outcome before = control::settle(view);
    control::AllocationView changed = before.view;
    for (const Change& change : changes) {
        result.changes.push_back(describe(change, changed));
        STOKER_TRY_VOID(apply_change(change, changed));
    }
    const control::Outcome after = control::settle(std::move(changed));
    result.at_rest = before.at_rest && after.at_rest;
    for (const JobAllocation& job : before.plan.jobs) {
        WhatIfRow row{job.job, job.pool, true, job, {}};
        for (const JobAllocation& next : after.plan.jobs) {
            if (next.job == job.job) {
                row.removed = false;
                row.after = next;
            }
        }
        if (!row.removed) {
            result.rate_before += row.before.numbers.rate;
            result.rate_after += row.after.numbers.rate;
        }
        result.rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(result.rows, [](const WhatIfRow& a, const WhatIfRow& b) {
        return std::tuple{a.removed, -gain(a)} < std::tuple{b.removed, -gain(b)};
    });
    return result;
}

std::string what_if_text(const WhatIf& result) {
    using enum Table::Align;
    Table table(
        {{"JOB"},
         {"POOL"},
         {"GRANT", kRight},
         {"THEN", kRight},
         {"SPEED", kRight},
         {"THEN", kRight},
         {"GAIN", kRight},
         {"WHY THEN"}});
    for (const WhatIfRow& row : result.rows) {
        const double before = row.before.numbers.rate;
        const double after = row.after.numbers.rate;
        table.add(
            {to_string(row.job),
             row.pool,
             to_string(row.before.granted),
             row.removed ? "" : to_string(row.after.granted),
             rate_or_nothing(before),
             row.removed ? "" : rate_or_nothing(after),
             row.removed ? "gone" : difference(before, after),
             row.removed ? "" : std::string{to_string(row.after.reason)}});
    }
    std::string text = fmt::format("What if: {}\n\n", fmt::join(result.changes, "; "));
    text += result.rows.empty() ? "No job uses a cache now.\n" : table.text();
    if (result.rate_before > 0) {
        text += fmt::format(
            "\nJobs that stay: {} together instead of {} ({}).\n"
            "Speeds are predictions for the time after all moves.\n",
            rate_text(result.rate_after),
            rate_text(result.rate_before),
            difference(result.rate_before, result.rate_after));
    }
    if (!result.at_rest) {
        text += "The planner does not come to rest here; the figures are those of one moment.\n";
    }
    return text;
}

std::string what_if_json(const WhatIf& result) {
    value changes = value::array();
    for (const std::string& change : result.changes) {
        changes[changes.size()] = value::string(change);
    }
    value jobs = value::array();
    for (const WhatIfRow& row : result.rows) {
        value item = value::object(true);
        item["namespace"] = value::string(row.job.ns);
        item["name"] = value::string(row.job.name);
        item["pool"] = value::string(row.pool);
        item["before"] = side_json(row.before);
        item["after"] = row.removed ? value::null() : side_json(row.after);
        jobs[jobs.size()] = item;
    }
    value json = value::object(true);
    json["changes"] = changes;
    json["jobs"] = jobs;
    json["bytesPerSecondBefore"] = value::number(result.rate_before);
    json["bytesPerSecondAfter"] = value::number(result.rate_after);
    json["atRest"] = value::boolean(result.at_rest);
    return json.serialize() + "\n";
}

}  // namespace stoker::cli
