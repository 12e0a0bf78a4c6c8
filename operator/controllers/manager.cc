#include "operator/controllers/manager.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/log/log.h"
#include "operator/controllers/gather.h"
#include "operator/core/spec/validate.h"
#include "operator/core/view/cluster_view.h"
#include "operator/core/view/warmups.h"
#include "operator/core/workload/build_filler.h"

namespace stoker::control {

namespace {

// A node's heartbeat changes it every few seconds; only the changes below matter.
bool is_news(const Change<Node>& change) {
    if (change.kind != ChangeKind::kUpdated) {
        return true;
    }
    const Node& before = change.before->value;
    const Node& after = change.after->value;
    return before.ready != after.ready || before.boot_id != after.boot_id ||
           before.meta.labels != after.meta.labels || before.meta.uid != after.meta.uid;
}

// A status changes every few seconds, and only its own controller reads it.
template <class T>
bool is_news(const Change<T>& change) {
    if (change.kind != ChangeKind::kUpdated) {
        return true;
    }
    const T& before = change.before->value;
    const T& after = change.after->value;
    return before.spec != after.spec || before.meta.generation != after.meta.generation ||
           before.meta.labels != after.meta.labels ||
           before.meta.annotations != after.meta.annotations ||
           before.meta.deleting_since != after.meta.deleting_since;
}

bool has_new_conditions(const Change<TrainingJob>& change) {
    return change.kind == ChangeKind::kUpdated &&
           change.before->value.status.conditions != change.after->value.status.conditions;
}

// Whether fields of a Dataset's status changed that TrainingJobs read.
bool has_new_size(const Change<Dataset>& change) {
    if (change.kind != ChangeKind::kUpdated) {
        return false;
    }
    const DatasetStatus& before = change.before->value.status;
    const DatasetStatus& after = change.after->value.status;
    return before.conditions != after.conditions || before.total_bytes != after.total_bytes ||
           before.samples != after.samples;
}

// A namespace's labels decide which other namespaces' Datasets are shared with it.
bool is_news(const Change<ObjectMeta>& change) {
    return change.kind != ChangeKind::kUpdated ||
           change.before->value.labels != change.after->value.labels;
}

// The TrainingJob in a child's label.
ObjectKey owner_key(const ObjectMeta& child) {
    return {child.ns, value_or_empty(child.labels, std::string{kJobLabel})};
}

EventNote unreadable_note(const Object& object, const Error& error) {
    EventNote note;
    note.regarding = {
        object.api_version, object.kind, object.key, object.uid, object.resource_version};
    note.type = EventType::kWarning;
    note.reason = "Unreadable";
    note.action = "Read";
    note.note =
        error.message + "; until it is fixed, Stoker uses the last version that it could read";
    return note;
}

template <class T>
void add_all(Reconciler& queue, const std::vector<StoredPtr<T>>& objects) {
    for (const auto& object : objects) {
        queue.add(object->key, Priority::kBackground);
    }
}

template <class Controller>
Reconciler::Function calls(Controller& controller) {
    return std::bind_front(&Controller::reconcile, &controller);
}

}  // namespace

Manager::Manager(Parts parts, const ManagerSettings& settings)
    : workers_(settings.workers),
      registry_({}, [this](const ObjectKey& job, bool news) { on_report(job, news); }),
      nodes_(
          {},
          [this](const std::string& node) { return pools_of(node); },
          [this](const NodeNews& news) { on_node_news(news); }),
      parts_{
          parts.cache,
          registry_,
          nodes_,
          latest_,
          sweep_ledger_,
          parts.client,
          parts.events,
          parts.clock,
          settings.job,
          settings.control_ca,
          settings.issue_peer,
          settings.adopts_workloads},
      training_job_(parts_),
      dataset_(parts_),
      warmup_(parts_),
      pool_(parts_),
      quota_(parts_),
      grants_(parts_, settings.grant_seconds, wakers()),
      sweeper_(parts_, [this] { add_all(dataset_queue_, parts_.cache.datasets().store().list()); }),
      training_job_queue_("trainingjob", calls(training_job_), parts.clock),
      dataset_queue_("dataset", calls(dataset_), parts.clock),
      warmup_queue_("datasetwarmup", calls(warmup_), parts.clock),
      pool_queue_("cachepool", calls(pool_), parts.clock),
      quota_queue_("cachequota", calls(quota_), parts.clock),
      grants_queue_("grants", calls(grants_), parts.clock),
      sweep_queue_("sweep", calls(sweeper_), parts.clock) {
    connect_training_jobs();
    connect_children();
    connect_datasets();
    connect_pools_and_quotas();
    connect_nodes();
    connect_namespaces();
    connect_unreadable();
    wake_grants();
    sweep_queue_.add(NodeSweeper::key());
}

GrantsController::OnChange Manager::wakers() {
    return {
        [this](const ObjectKey& job) { training_job_queue_.add(job, Priority::kBackground); },
        [this](const ObjectKey& job) { look_later(training_job_queue_, job); },
        [this](const ObjectKey& quota) { quota_queue_.add(quota); },
        [this](const ObjectKey& pool) { pool_queue_.add(pool); },
        [this](EventNote note) { parts_.events.record(std::move(note)); }};
}

void Manager::connect_training_jobs() {
    parts_.cache.training_jobs().add_handler([this](const Change<TrainingJob>& change) {
        const bool news = is_news(change);
        training_job_queue_.add(
            change.object().key, news ? priority_of_events() : Priority::kBackground);
        if (!news && !has_new_conditions(change)) {
            return;
        }
        for (const auto& snapshot : {change.before, change.after}) {
            if (snapshot) {
                wake_datasets_of(snapshot->value);
            }
        }
        wake_grants();
    });
}

void Manager::connect_children() {
    parts_.cache.jobs().add_handler([this](const Change<Job>& change) {
        training_job_queue_.add(owner_key(change.object().value.meta), priority_of_events());
    });
    parts_.cache.workloads().add_handler([this](const Change<Workload>& change) {
        training_job_queue_.add(owner_key(change.object().value.meta), priority_of_events());
    });
    parts_.cache.services().add_handler([this](const Change<ObjectMeta>& change) {
        training_job_queue_.add(owner_key(change.object().value), priority_of_events());
    });
    parts_.cache.pods().add_handler([this](const Change<Pod>& change) {
        const ObjectKey owner = owner_key(change.object().value.meta);
        training_job_queue_.add(owner, priority_of_events());
        if (const auto job = parts_.cache.training_jobs().store().get(owner)) {
            wake_datasets_of(job->value, true);  // fillers follow the pods of guest jobs
        }
        wake_grants();
    });
    parts_.cache.filler_jobs().add_handler(
        [this](const Change<Job>& change) { wake_dataset_of_child(change.object().value.meta); });
    parts_.cache.filler_pods().add_handler([this](const Change<Pod>& change) {
        wake_dataset_of_child(change.object().value.meta);
        wake_grants();
    });
    parts_.cache.packing_jobs().add_handler(
        [this](const Change<Job>& change) { wake_dataset_of_child(change.object().value.meta); });
    parts_.cache.packing_pods().add_handler(
        [this](const Change<Pod>& change) { wake_dataset_of_child(change.object().value.meta); });
}

void Manager::connect_datasets() {
    parts_.cache.datasets().add_handler([this](const Change<Dataset>& change) {
        const ObjectKey& key = change.object().key;
        if (change.kind == ChangeKind::kDeleted) {
            sweeper_.note_deleted(change.object().value);
            sweep_queue_.add(NodeSweeper::key());
        }
        const bool news = is_news(change);
        wake_warmups_of(key, news || has_new_size(change));
        dataset_queue_.add(key, news ? Priority::kNormal : Priority::kBackground);
        if (!news && !has_new_size(change)) {
            look_later(grants_queue_, GrantsController::key());
            return;
        }
        add_all(
            training_job_queue_,
            parts_.cache.training_jobs().store().by_index(index::kDataset, to_string(key)));
        wake_grants();
    });
    connect_warmups();
}

// Wakes the Dataset's controller and the grants when a DatasetWarmup changes. Its status lists the
// chosen nodes, where fillers start, and the finished ones; the rest share its rate limit.
void Manager::connect_warmups() {
    parts_.cache.warmups().add_handler([this](const Change<DatasetWarmup>& change) {
        warmup_queue_.add(change.object().key);
        if (change.kind == ChangeKind::kUpdated &&
            asks_the_same(change.before->value, change.after->value)) {
            return;
        }
        for (const auto& snapshot : {change.before, change.after}) {
            if (snapshot) {
                dataset_queue_.add({snapshot->key.ns, snapshot->value.spec.dataset_ref});
            }
        }
        wake_grants();
    });
}

// A finished warm-up keeps its status.
void Manager::wake_warmups_of(const ObjectKey& dataset, bool news) {
    for (const auto& warmup :
         parts_.cache.warmups().store().by_index(index::kDataset, to_string(dataset))) {
        if (!is_finished(warmup->value)) {
            look(warmup_queue_, warmup->key, news);
        }
    }
}

void Manager::connect_pools_and_quotas() {
    parts_.cache.pools().add_handler([this](const Change<CachePool>& change) {
        pool_queue_.add(change.object().key);
        if (!is_news(change)) {
            return;
        }
        add_all(quota_queue_, parts_.cache.quotas().store().list());
        add_all(training_job_queue_, parts_.cache.training_jobs().store().list());
        add_all(warmup_queue_, parts_.cache.warmups().store().list());
        wake_grants();
    });
    parts_.cache.quotas().add_handler([this](const Change<CacheQuota>& change) {
        const std::string& ns = change.object().key.ns;
        quota_queue_.add(change.object().key);
        if (!is_news(change)) {
            return;
        }
        add_all(quota_queue_, parts_.cache.quotas().store().by_index(index::kNamespace, ns));
        add_all(
            training_job_queue_,
            parts_.cache.training_jobs().store().by_index(index::kNamespace, ns));
        wake_grants();
    });
}

void Manager::connect_nodes() {
    parts_.cache.nodes().add_handler([this](const Change<Node>& change) {
        if (!is_news(change)) {
            return;
        }
        if (change.kind == ChangeKind::kDeleted) {
            nodes_.forget(change.object().key.name);
        }
        add_all(pool_queue_, parts_.cache.pools().store().list());
        add_all(training_job_queue_, parts_.cache.training_jobs().store().list());
        add_all(warmup_queue_, parts_.cache.warmups().store().list());
        wake_grants();
    });
}

void Manager::connect_namespaces() {
    parts_.cache.namespaces().add_handler([this](const Change<ObjectMeta>& change) {
        if (!is_news(change)) {
            return;
        }
        const std::string& ns = change.object().value.name;
        for (const auto& job :
             parts_.cache.training_jobs().store().by_index(index::kNamespace, ns)) {
            training_job_queue_.add(job->key);
            wake_datasets_of(job->value);
        }
        wake_grants();
    });
}

// Reports objects that an older or missing CRD let through, by Event: users do not read our log.
// Every replica reports them, because the next leader has read them before it leads.
void Manager::connect_unreadable() {
    const auto tell = [this](const Object& object, const Error& error) {
        parts_.events.record(unreadable_note(object, error));
    };
    parts_.cache.training_jobs().set_on_unreadable(tell);
    parts_.cache.datasets().set_on_unreadable(tell);
    parts_.cache.warmups().set_on_unreadable(tell);
    parts_.cache.pools().set_on_unreadable(tell);
    parts_.cache.quotas().set_on_unreadable(tell);
}

// While the first lists arrive, every object is new to us, and nobody waits for a reaction.
Priority Manager::priority_of_events() {
    return parts_.cache.training_jobs().has_synced() && parts_.cache.pods().has_synced()
               ? Priority::kNormal
               : Priority::kBackground;
}

void Manager::look_later(Reconciler& queue, const ObjectKey& key) {
    const std::size_t jobs = parts_.cache.training_jobs().store().size();
    const Duration wait = std::min<Duration>(kLookPause * jobs, kLookPauseMax);
    if (wait < kLookAtOnce) {
        queue.add(key, Priority::kBackground);
    } else {
        queue.add_after(key, wait);
    }
}

void Manager::look(Reconciler& queue, const ObjectKey& key, bool news) {
    if (news) {
        queue.add(key, Priority::kBackground);
    } else {
        look_later(queue, key);
    }
}

void Manager::on_report(const ObjectKey& job, bool news) {
    if (is_filler(job.name)) {
        if (const auto dataset = find_filled(job, parts_.cache)) {
            look(dataset_queue_, dataset->key, news);
            wake_warmups_of(dataset->key, news);
        }
    } else {
        look(training_job_queue_, job, news);
        if (const auto stored = parts_.cache.training_jobs().store().get(job)) {
            for (const JobDataset& entry : stored->value.spec.datasets) {
                if (entry.dataset_ref) {
                    look(dataset_queue_, dataset_key(job.ns, entry), news);
                    wake_warmups_of(dataset_key(job.ns, entry), news);
                }
            }
        }
    }
    if (news) {
        wake_grants();
    } else {
        look_later(grants_queue_, GrantsController::key());
    }
}

void Manager::on_node_news(const NodeNews& news) {
    sweep_queue_.add(NodeSweeper::key());
    if (news.verdicts) {
        add_all(pool_queue_, parts_.cache.pools().store().list());
        wake_grants();
    }
}

std::vector<PoolOrder> Manager::pools_of(const std::string& node) {
    std::vector<PoolOrder> orders;
    const auto stored = parts_.cache.nodes().store().get({"", node});
    for (const auto& pool : parts_.cache.pools().store().list()) {
        const CachePool& value = pool->value;
        if (stored && !value.meta.deleting_since && validate(value).empty() &&
            matches(value.spec.node_selector, stored->value.meta.labels)) {
            orders.push_back({value.meta.name, value.spec.host_path});
        }
    }
    return orders;
}

NodePrograms Manager::node_programs(NodeProgramAccount account) {
    auto node_of_pod = [this, ns = account.ns](const std::string& pod) {
        const auto stored = parts_.cache.node_pods().store().get({ns, pod});
        return stored ? stored->value.node_name : "";
    };
    return {nodes_, std::move(account), std::move(node_of_pod)};
}

void Manager::wake_datasets_of(const TrainingJob& job, bool only_foreign) {
    for (const JobDataset& dataset : job.spec.datasets) {
        const ObjectKey key = dataset_key(job.meta.ns, dataset);
        if (dataset.dataset_ref && (!only_foreign || key.ns != job.meta.ns)) {
            dataset_queue_.add(key, Priority::kBackground);
        }
    }
}

void Manager::wake_dataset_of_child(const ObjectMeta& child) {
    const std::string& name =
        value_or_empty(child.annotations, std::string{kFillerDatasetAnnotation});
    if (!name.empty()) {
        dataset_queue_.add({child.ns, name});
    }
}

void Manager::add_to(Supervisor& supervisor) {
    const auto add = [this, &supervisor](Reconciler& queue) {
        const bool by_key = &queue == &training_job_queue_ || &queue == &dataset_queue_;
        supervisor.add_worker(
            queue.name(),
            [this, &queue](const std::stop_token& stop) {
                working_ = true;
                queue.work(stop);
            },
            by_key ? workers_ : 1);
        supervisor.add_drain([this, &queue](TimePoint until) {
            // A replica that never led has full queues and no workers.
            if (working_ && !queue.drain(until)) {
                log::warning("not all work ended in time", {{"controller", queue.name()}});
            }
        });
    };
    for_each(add);
}

void Manager::for_each(const std::function<void(Reconciler&)>& visit) {
    visit(training_job_queue_);
    visit(dataset_queue_);
    visit(warmup_queue_);
    visit(pool_queue_);
    visit(quota_queue_);
    visit(grants_queue_);
    visit(sweep_queue_);
}

}  // namespace stoker::control
