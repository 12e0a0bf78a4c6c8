#include "operator/sidecars/node_registry.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "common/log/log.h"
#include "operator/sidecars/node_rules.h"

namespace stoker::control {

namespace {

constexpr std::uint32_t kCallsWhileSweepingSeconds = 2;
constexpr std::size_t kCallSecondsMin = 5;
constexpr std::size_t kCallsPerSecond = 200;  // total of all nodes

using Verdict = std::tuple<std::string, std::string, PoolVerdict, std::string>;
using Mount = std::tuple<std::string, std::string, std::string>;  // pool, namespace, uid

std::set<Verdict> verdicts_of(const NodeReport& report) {
    std::set<Verdict> result;
    for (const PoolState& pool : report.pools) {
        result.emplace(pool.pool, pool.path, pool.verdict, pool.message);
    }
    return result;
}

std::set<Mount> mounts_of(const NodeReport& report) {
    std::set<Mount> result;
    for (const PoolState& pool : report.pools) {
        for (const DirectoryUse& use : pool.directories) {
            if (use.mounted) {
                result.emplace(pool.pool, use.ns, use.dataset_uid);
            }
        }
    }
    return result;
}

NodeNews news_of(const NodeReport* before, const NodeReport& after) {
    const NodeReport nothing;
    const NodeReport& old = before == nullptr ? nothing : *before;
    const bool back =
        before != nullptr && after.received_at - before->received_at > kNodeSilenceMax;
    return {
        back || verdicts_of(old) != verdicts_of(after), mounts_of(old) != mounts_of(after), false};
}

void log_verdicts(const NodeReport& report) {
    for (const PoolState& pool : report.pools) {
        log::info(
            "pool on a node",
            {{"node", report.node},
             {"pool", pool.pool},
             {"path", pool.path},
             {"verdict", to_string(pool.verdict)},
             {"message", pool.message}});
    }
}

// Keeps the previous state of the node's pools that `report` does not mention.
void keep_old_words(
    const NodeReport& before, const std::vector<PoolOrder>& pools, NodeReport& report) {
    for (const PoolOrder& order : pools) {
        const auto is_it = [&](const PoolState& it) {
            return it.pool == order.pool && it.path == order.path;
        };
        const auto old_word = std::ranges::find_if(before.pools, is_it);
        const bool is_told = std::ranges::any_of(
            report.pools, [&](const PoolState& it) { return it.pool == order.pool; });
        if (!is_told && old_word != before.pools.end()) {
            report.pools.push_back(*old_word);
        }
    }
}

bool names_pool(const std::vector<PoolOrder>& pools, const SweepOrder& order) {
    return std::ranges::find(pools, PoolOrder{order.pool, order.path}) != pools.end();
}

}  // namespace

NodeRegistry::NodeRegistry(Options options, PoolsOf pools_of, OnNews on_news)
    : options_(options),
      pools_of_(std::move(pools_of)),
      on_news_(std::move(on_news)) {}

void NodeRegistry::listen(TimePoint now) {
    auto state = state_.lock();
    state->listening_since = state->listening_since.value_or(now);
}

std::optional<TimePoint> NodeRegistry::listening_since() {
    return state_.lock()->listening_since;
}

Result<NodeOrders> NodeRegistry::report(NodeReport report) {
    if (const Status valid = validate_node_report(report); !valid) {
        count_refused();
        return fail(valid.error());
    }
    trim_texts(report);
    NodeOrders orders;
    orders.pools = pools_of_(report.node);
    NodeNews news;
    {
        auto state = state_.lock();
        STOKER_TRY(const auto word, remember(*state, std::move(report), orders.pools, news));
        std::tie(orders.confirmed_sweeps, news.sweeps) = take_sweeps(*state, *word);
        const auto order = state->orders.find(word->node);
        if (order != state->orders.end() && names_pool(orders.pools, order->second)) {
            orders.sweep = order->second;
        }
        const std::size_t relaxed =
            std::max(kCallSecondsMin, state->reports.size() / kCallsPerSecond);
        orders.next_call_seconds =
            orders.sweep ? kCallsWhileSweepingSeconds : static_cast<std::uint32_t>(relaxed);
    }
    if (news.any() && on_news_) {
        on_news_(news);
    }
    return orders;
}

Result<std::shared_ptr<const NodeReport>> NodeRegistry::remember(
    State& state, NodeReport report, const std::vector<PoolOrder>& pools, NodeNews& news) const {
    const auto before = state.reports.find(report.node);
    const bool is_new = before == state.reports.end();
    if (is_new && state.reports.size() >= options_.node_count_max) {
        return fail(ErrorCode::kResourceExhausted, "too many nodes");
    }
    if (!is_new) {
        keep_old_words(*before->second, pools, report);
    }
    auto word = std::make_shared<const NodeReport>(std::move(report));
    news = news_of(is_new ? nullptr : before->second.get(), *word);
    if (news.verdicts) {
        log_verdicts(*word);
    }
    state.reports[word->node] = word;
    ++state.counts.reports;
    return word;
}

std::pair<std::vector<std::string>, bool> NodeRegistry::take_sweeps(
    State& state, const NodeReport& report) {
    std::vector<std::string> confirmed;
    bool ended = false;
    for (const SweepResult& sweep : report.sweeps) {
        confirmed.push_back(sweep.id);
        const auto order = state.orders.find(report.node);
        // Other results: confirmed before, withdrawn, or ordered by an earlier operator.
        if (order != state.orders.end() && order->second.id == sweep.id) {
            state.orders.erase(order);
            state.results.push_back(sweep);
            ended = true;
        }
    }
    return {std::move(confirmed), ended};
}

void NodeRegistry::order_sweep(const std::string& node, SweepOrder order) {
    state_.lock()->orders.insert_or_assign(node, std::move(order));
}

void NodeRegistry::withdraw_sweep(const std::string& node, const std::string& id) {
    auto state = state_.lock();
    const auto order = state->orders.find(node);
    if (order != state->orders.end() && order->second.id == id) {
        state->orders.erase(order);
    }
}

std::vector<SweepResult> NodeRegistry::take_results() {
    return std::exchange(state_.lock()->results, {});
}

NodeReports NodeRegistry::all() {
    return state_.lock()->reports;
}

void NodeRegistry::forget(const std::string& node) {
    auto state = state_.lock();
    state->reports.erase(node);
    state->orders.erase(node);
}

void NodeRegistry::forget_silent(TimePoint now) {
    auto state = state_.lock();
    std::erase_if(state->reports, [&](const auto& entry) {
        return now - entry.second->received_at > options_.forget_after;
    });
}

}  // namespace stoker::control
