#include "operator/controllers/cachepool/node_preparer.h"

#include <algorithm>
#include <utility>

#include "common/log/log.h"
#include "operator/core/cluster_view.h"

namespace stoker::control {

namespace {

PreparationTarget target_of(const CachePool& pool, const Node& node) {
    return {node.meta.name, node.meta.uid, node.boot_id, pool.spec.host_path};
}

void log_failures(const PreparationPlan& plan) {
    for (const PreparationTarget& target : plan.failed) {
        log::warning(
            "node is not prepared",
            {{"node", target.node},
             {"hostPath", target.host_path},
             {"pod", preparation_pod_name(target)}});
    }
}

}  // namespace

NodePreparer::NodePreparer(
    ClusterCache& cache,
    AgentRegistry& registry,
    ApiClient& client,
    const Clock& clock,
    NodePodSettings settings)
    : cache_(cache),
      registry_(registry),
      client_(client),
      clock_(clock),
      settings_(std::move(settings)) {}

Result<Reconciled> NodePreparer::reconcile() {
    const PreparationView view = gather();
    const PreparationPlan plan = plan_preparation(view, clock_.wall_now(), {});
    {
        auto done = done_.lock();
        for (const PreparationTarget& target : plan.finished) {
            done->emplace(target, clock_.now());
            log::info("node prepared", {{"node", target.node}, {"hostPath", target.host_path}});
        }
    }
    log_failures(plan);
    STOKER_TRY_VOID(apply(plan));
    return Reconciled{kLookEvery};
}

PreparationView NodePreparer::gather() {
    PreparationView view;
    const auto nodes = cache_.nodes().store().list();
    for (const auto& pool : cache_.pools().store().list()) {
        const CachePool& value = pool->value;
        if (value.meta.deleting_since || value.spec.host_path.empty()) {
            continue;
        }
        for (const auto& node : nodes) {
            if (node->value.ready && matches(value.spec.node_selector, node->value.meta.labels)) {
                view.wanted.insert(target_of(value, node->value));
            }
        }
    }
    for (const auto& pod : cache_.node_pods().store().list()) {
        if (is_node_pod(pod->value, kPrepareComponent)) {
            view.pods.push_back(read_prepare_pod(pod->value));
        }
    }
    auto done = done_.lock();
    std::erase_if(*done, [&](const auto& entry) { return !view.wanted.contains(entry.first); });
    forget_what_failed(*done);
    for (const auto& [target, since] : *done) {
        view.done.insert(target);
    }
    return view;
}

// A leader that admits nothing may lack the right to write. Whether that was the reason shows
// afterwards.
void NodePreparer::forget_what_failed(std::map<PreparationTarget, TimePoint>& done) const {
    std::set<std::string> troubled;
    for (const AgentReport& report : registry_.all()) {
        const bool stuck = std::any_of(
            report.datasets.begin(), report.datasets.end(), [](const DatasetReport& dataset) {
                return dataset.leader && !dataset.admitting;
            });
        if (stuck && report.attached) {
            troubled.insert(report.node);
        }
    }
    const TimePoint now = clock_.now();
    std::erase_if(done, [&](const auto& entry) {
        return troubled.contains(entry.first.node) && now - entry.second > kAgainAfter;
    });
}

Status NodePreparer::apply(const PreparationPlan& plan) {
    for (const ObjectKey& key : plan.remove) {
        STOKER_TRY_VOID(client_.remove(kinds::kPods, key, {}));
    }
    if (!plan.create.empty()) {
        STOKER_TRY_VOID(owner_.learn(client_, {settings_.ns, settings_.own_pod}));
    }
    for (const PreparationTarget& target : plan.create) {
        const Result<Object> made = client_.create(
            kinds::kPods, settings_.ns, build_prepare_pod(target, settings_, owner_.get()));
        // It is there from a try whose answer was lost.
        if (!made && made.error().code != ErrorCode::kAlreadyExists) {
            return fail(made.error());
        }
    }
    return {};
}

std::set<std::string> NodePreparer::prepared_nodes(const CachePool& pool) {
    std::set<std::string> names;
    auto done = done_.lock();
    for (const auto& node : cache_.nodes().store().list()) {
        if (done->contains(target_of(pool, node->value))) {
            names.insert(node->value.meta.name);
        }
    }
    return names;
}

}  // namespace stoker::control
