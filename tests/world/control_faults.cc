#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "operator/kube/resource_kind.h"
#include "tests/world/control_world.h"

// Actions of users, and faults, drawn by the seed.
namespace stoker::world {

namespace kinds = control::kinds;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

// Number of TrainingJobs that users still change. Older ones run on until their trainers end.
constexpr std::size_t kJobsMax = 7;

}  // namespace

void ControlWorld::begin_faults() {
    faults_end_ = schedule_.now() + schedule_.draw(seconds{300}, seconds{600});
    using World = ControlWorld;
    repeat("job created", &World::create_job, schedule_.draw(seconds{20}, seconds{120}));
    begin_group(
        "users",
        {{"job deleted", &World::delete_job},
         {"job suspended or resumed", &World::toggle_suspension},
         {"quota changed", &World::change_quota},
         {"pool resized", &World::resize_pool},
         {"dataset recreated", &World::recreate_dataset},
         {"origin changed", &World::change_origin},
         {"name of a job taken", &World::occupy_job_name}});
    begin_group(
        "operator",
        {{"operator killed", &World::kill_operator},
         {"operator killed in a call", &World::kill_operator_in_a_call},
         {"leader replaced", &World::replace_leader},
         {"wall clock jumped", &World::jump_wall_clock}});
    begin_group(
        "API server",
        {{"API server down", &World::api_down},
         {"API errors", &World::api_errors},
         {"watches cut", &World::cut_watches},
         {"watches late", &World::delay_watches},
         {"history compacted", &World::compact_history},
         {"lists stale", &World::stale_lists}});
    begin_group(
        "streams",
        {{"stream cut", &World::cut_stream},
         {"stream stalled", &World::stall_stream},
         {"message garbled", &World::garble_stream},
         {"reports doubled", &World::double_reports}});
    begin_group(
        "pods and nodes",
        {{"sidecar killed", &World::kill_sidecar},
         {"eviction late", &World::resist_eviction},
         {"trainer failed", &World::fail_trainer},
         {"node lost", &World::lose_node}});
}

void ControlWorld::begin_group(
    const std::string& name, const std::vector<std::pair<const char*, Action>>& kinds) {
    if (schedule_.luck().below(3) == 0) {
        return;
    }
    for (const auto& [kind, action] : kinds) {
        if (schedule_.luck().below(3) != 0) {
            const Duration mean = schedule_.draw_scale(seconds{20}, seconds{300});
            schedule_.say(fmt::format(
                "fault of {}: {}, every {:.0f} s on average", name, kind, seconds_of(mean)));
            repeat(kind, action, mean);
        }
    }
}

void ControlWorld::repeat(const std::string& name, Action action, Duration mean) {
    schedule_.run_in(schedule_.draw(Duration{1}, 2 * mean), [this, name, action, mean] {
        if (is_calm_) {
            return;
        }
        schedule_.say("-- " + name);
        count(name);
        (this->*action)();
        repeat(name, action, mean);
    });
}

void ControlWorld::during(Duration time, std::function<void()> end) {
    schedule_.run_in(time, std::move(end));
}

ControlCluster::Pod* ControlWorld::draw_pod() {
    std::vector<ControlCluster::Pod*> running;
    for (auto& [key, pod] : cluster_->pods()) {
        if (pod.sidecar) {
            running.push_back(&pod);
        }
    }
    return running.empty() ? nullptr : running[schedule_.luck().below(running.size())];
}

std::optional<ObjectKey> ControlWorld::draw_job() {
    if (jobs_.empty()) {
        return std::nullopt;
    }
    return *std::next(
        jobs_.begin(), static_cast<std::ptrdiff_t>(schedule_.luck().below(jobs_.size())));
}

void ControlWorld::create_job() {
    Prng& luck = schedule_.luck();
    if (jobs_.size() >= kJobsMax) {
        jobs_.erase(jobs_.begin());
    }
    const std::string ns = kNamespaces[luck.below(3)];
    std::vector<ObjectKey> readable;
    for (const auto& [uid, dataset] : datasets_) {
        if (dataset.key.ns == ns || is_shared_) {
            readable.push_back(dataset.key);
        }
    }
    const ObjectKey dataset = readable[luck.below(readable.size())];
    const ObjectKey key{ns, fmt::format("j{}", jobs_made_++)};
    const std::string least =
        luck.below(3) == 0 ? fmt::format(R"(,"cache":{{"minBytes":"{}Gi"}})", luck.below(20)) : "";
    api_.create(
        kinds::kTrainingJobs,
        ns,
        fmt::format(
            R"({{"metadata":{{"name":"{}"}},"spec":{{"trainer":{{"image":"trainer:1","numNodes":{}}},)"
            R"("runPolicy":{{"backoffLimit":{}}},)"
            R"("datasets":[{{"name":"train","datasetRef":{{"name":"{}","namespace":"{}"}}}}]{}}}}})",
            key.name,
            1 + luck.below(3),
            luck.below(4),
            dataset.name,
            dataset.ns,
            least));
    jobs_.insert(key);
    schedule_.say(fmt::format("user makes {} on {}", to_string(key), to_string(dataset)));
}

void ControlWorld::delete_job() {
    if (const auto job = draw_job()) {
        api_.remove(kinds::kTrainingJobs, *job);
        jobs_.erase(*job);
        suspended_.erase(*job);
        schedule_.say("user deletes " + to_string(*job));
    }
}

void ControlWorld::toggle_suspension() {
    if (const auto job = draw_job()) {
        const bool suspend = suspended_.insert(*job).second;
        if (!suspend) {
            suspended_.erase(*job);
        }
        api_.merge(
            kinds::kTrainingJobs, *job, fmt::format(R"({{"spec":{{"suspend":{}}}}})", suspend));
        schedule_.say((suspend ? "user suspends " : "user resumes ") + to_string(*job));
    }
}

void ControlWorld::change_quota() {
    const std::string ns = kNamespaces[schedule_.luck().below(3)];
    quotas_[ns] = draw_quota();
    behind_at_ = schedule_.now();
    api_.merge(kinds::kCacheQuotas, {ns, "quota"}, fmt::format("{{{}}}", quota_spec(quotas_[ns])));
}

void ControlWorld::resize_pool() {
    capacity_ = gib(20 + schedule_.luck().below(120));
    behind_at_ = schedule_.now();
    api_.merge(
        kinds::kCachePools,
        {"", "nvme"},
        fmt::format(R"({{"spec":{{"capacityPerNode":"{}"}}}})", capacity_.count()));
    schedule_.say(fmt::format("pool has {} bytes a node", capacity_.count()));
}

void ControlWorld::recreate_dataset() {
    const auto dataset = std::next(
        datasets_.begin(), static_cast<std::ptrdiff_t>(schedule_.luck().below(datasets_.size())));
    const ObjectKey key = dataset->second.key;
    const std::uint64_t number = std::stoull(key.name.substr(1));
    api_.remove(kinds::kDatasets, key);
    gone_datasets_.insert(*dataset);
    datasets_.erase(dataset);
    behind_at_ = schedule_.now();
    make_dataset(key.ns, number);
    schedule_.say("user replaces dataset " + to_string(key));
}

void ControlWorld::change_origin() {
    const auto dataset = std::next(
        datasets_.begin(), static_cast<std::ptrdiff_t>(schedule_.luck().below(datasets_.size())));
    ++dataset->second.revision;
    schedule_.say("the origin of " + to_string(dataset->second.key) + " changes");
}

// Another client creates a Job with the name of a job's next attempt, and removes it later.
void ControlWorld::occupy_job_name() {
    const auto job = draw_job();
    if (!job) {
        return;
    }
    const auto found = api_.find(kinds::kTrainingJobs, *job);
    const std::int64_t attempt =
        found ? control::integer_at(found->value(), {"status", "attempt"}).value_or(0) : 0;
    const ObjectKey name{job->ns, fmt::format("{}-a{}", job->name, attempt + 1)};
    const auto made = api_.create(
        kinds::kJobs,
        job->ns,
        fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"completions":1}}}})", name.name));
    if (made.status == 201) {
        strangers_.insert(name);
        during(schedule_.draw_scale(seconds{1}, seconds{100}), [this, name] {
            if (strangers_.erase(name) > 0) {
                api_.remove(kinds::kJobs, name);
            }
        });
    }
}

void ControlWorld::kill_operator() {
    operators_.clear();
    start_operator_in(schedule_.draw_scale(milliseconds{100}, seconds{60}));
}

void ControlWorld::kill_operator_in_a_call() {
    if (!operators_.empty()) {
        operators_.back()->die_after(schedule_.luck().below(12));
    }
}

// The old leader continues for a while, but its writes are refused.
void ControlWorld::replace_leader() {
    if (operators_.size() != 1 || leader() == nullptr) {
        return;
    }
    operators_.front()->fence();
    start_operator();
    during(schedule_.draw_scale(milliseconds{100}, seconds{7}), [this] {
        std::erase_if(operators_, [](const auto& it) { return it->is_fenced(); });
    });
}

void ControlWorld::jump_wall_clock() {
    const Duration by = schedule_.draw_scale(seconds{1}, hours{1});
    wall_.set_offset(schedule_.luck().below(2) == 0 ? by : -by);
    during(schedule_.draw_scale(seconds{1}, minutes{2}), [this] { wall_.set_offset({}); });
}

void ControlWorld::api_down() {
    api_.faults.is_down = true;
    api_.cut_watches();
    during(schedule_.draw_scale(milliseconds{500}, seconds{60}), [this] {
        api_.faults.is_down = false;
    });
}

void ControlWorld::api_errors() {
    api_.faults.refused = 0.5 * schedule_.luck().unit();
    api_.faults.lost = 0.3 * schedule_.luck().unit();
    api_.faults.conflicts = 0.3 * schedule_.luck().unit();
    during(schedule_.draw_scale(seconds{1}, seconds{60}), [this] {
        api_.faults.refused = api_.faults.lost = api_.faults.conflicts = 0;
    });
}

void ControlWorld::cut_watches() {
    api_.cut_watches();
}

void ControlWorld::delay_watches() {
    api_.faults.watch_lag = schedule_.draw_scale(seconds{1}, seconds{20});
    during(schedule_.draw_scale(seconds{5}, seconds{60}), [this] {
        api_.faults.watch_lag = ApiFaults{}.watch_lag;
    });
}

void ControlWorld::compact_history() {
    cluster_->catch_up();
    api_.compact();
    cluster_->skip_history();
    api_.cut_watches();
}

void ControlWorld::stale_lists() {
    api_.begin_stale_lists();
    during(schedule_.draw_scale(seconds{1}, seconds{30}), [this] {
        api_.faults.lists_are_stale = false;
    });
}

void ControlWorld::cut_stream() {
    const ControlCluster::Pod* pod = draw_pod();
    if (pod != nullptr && pod->sidecar->stream() != nullptr) {
        pod->sidecar->stream()->cut(
            schedule_.draw_scale(milliseconds{1}, seconds{35}),
            schedule_.draw_scale(milliseconds{1}, seconds{35}));
    }
}

void ControlWorld::stall_stream() {
    const ControlCluster::Pod* pod = draw_pod();
    if (pod != nullptr && pod->sidecar->stream() != nullptr) {
        pod->sidecar->stream()->stall(
            schedule_.now() + schedule_.draw_scale(seconds{1}, seconds{30}));
    }
}

void ControlWorld::garble_stream() {
    const ControlCluster::Pod* pod = draw_pod();
    if (pod != nullptr && pod->sidecar->stream() != nullptr) {
        pod->sidecar->stream()->garble();
    }
}

void ControlWorld::double_reports() {
    doubled_ = schedule_.luck().unit();
    during(schedule_.draw_scale(seconds{5}, seconds{60}), [this] { doubled_ = 0; });
}

void ControlWorld::kill_sidecar() {
    if (ControlCluster::Pod* pod = draw_pod()) {
        schedule_.say("kill sidecar of " + pod->key.name);
        cluster_->kill_sidecar(*pod);
    }
}

void ControlWorld::resist_eviction() {
    if (const ControlCluster::Pod* pod = draw_pod()) {
        pod->sidecar->resist(schedule_.now() + schedule_.draw_scale(seconds{1}, seconds{60}));
    }
}

void ControlWorld::fail_trainer() {
    if (const ControlCluster::Pod* pod = draw_pod()) {
        cluster_->end_trainer(ObjectKey{pod->key}, false);
    }
}

void ControlWorld::lose_node() {
    std::vector<std::string> alive;
    for (const auto& [name, node] : cluster_->nodes()) {
        if (!node.is_gone) {
            alive.push_back(name);
        }
    }
    if (alive.empty()) {
        return;
    }
    const std::string lost = alive[schedule_.luck().below(alive.size())];
    schedule_.say("node " + lost + " is lost");
    cluster_->lose_node(lost);
    during(schedule_.draw(seconds{10}, seconds{100}), [this] {
        cluster_->add_node(fmt::format("n{}", nodes_made_++));
    });
}

}  // namespace stoker::world
