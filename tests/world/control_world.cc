#include "tests/world/control_world.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/base/check.h"
#include "operator/kube/resource_kind.h"

namespace stoker::world {

namespace kinds = control::kinds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Duration kLivenessBound = seconds{600};
constexpr Duration kRest = seconds{45};  // no grant changes for this long
constexpr const char* kPool = "nvme";
constexpr const char* kPath = "/var/lib/stoker";

}  // namespace

ControlWorld::ControlWorld(std::uint64_t seed)
    : seed_(seed),
      schedule_(seed),
      wall_(schedule_.clock()),
      api_(schedule_) {
    schedule_.set_speaker("world");
    api_.on_operator_write = [this](const ApiWrite& write) { check_write(write); };
    ControlCluster::Settings settings;
    const auto known = [this](const std::string& uid) {
        const auto found = datasets_.find(uid);
        return found != datasets_.end() ? found->second : gone_datasets_[uid];
    };
    settings.total_of = [known](const std::string& uid) { return known(uid).total; };
    settings.sidecars.revision_of = [known](const std::string& uid) { return known(uid).revision; };
    settings.namespace_of = [known](const std::string& uid) { return known(uid).key.ns; };
    settings.sidecars.dial = [this](ControlSidecar& sidecar) { return dial(sidecar); };
    settings.sidecars.doubled = [this] { return doubled_; };
    settings.sidecars.on_group = [this](ControlSidecar& sidecar, const auto& group) {
        check_group(sidecar, group);
    };
    settings.sidecars.on_certificate = [this](ControlSidecar& sidecar, const auto& uris) {
        check_certificate(sidecar, uris);
    };
    cluster_ = std::make_unique<ControlCluster>(schedule_, api_, std::move(settings));
    cluster_->on_broken = [this](std::string words) { accuse(std::move(words)); };
    make_objects();
    start_operator();
    schedule_.run_in(seconds{1}, [this] { report_nodes(); });
}

ControlWorld::~ControlWorld() {
    operators_.clear();
    cluster_.reset();
}

void ControlWorld::make_objects() {
    Prng& luck = schedule_.luck();
    is_shared_ = luck.below(3) == 0;
    capacity_ = gib(20 + luck.below(120));
    api_.create(
        kinds::kCachePools,
        "",
        fmt::format(
            R"({{"metadata":{{"name":"{}"}},"spec":{{"capacityPerNode":"{}","volume":{{"hostPath":{{"path":"{}"}}}}}}}})",
            kPool,
            capacity_.count(),
            kPath));
    const std::uint64_t nodes = 1 + luck.below(4);
    for (std::uint64_t i = 0; i < nodes; ++i) {
        cluster_->add_node(fmt::format("n{}", nodes_made_++));
    }
    for (const std::string ns : kNamespaces) {
        api_.create(
            kinds::kNamespaces,
            "",
            fmt::format(R"({{"metadata":{{"name":"{}","labels":{{"team":"all"}}}}}})", ns));
        for (std::uint64_t i = 0; i < 1 + luck.below(3); ++i) {
            make_dataset(ns, i);
        }
        make_quota(ns);
    }
    for (std::uint64_t i = 0; i < 1 + luck.below(4); ++i) {
        create_job();
    }
    schedule_.say(fmt::format(
        "seed {}: {} nodes of {} bytes{}",
        seed_,
        nodes,
        capacity_.count(),
        is_shared_ ? ", shared datasets" : ""));
}

void ControlWorld::make_dataset(const std::string& ns, std::uint64_t number) {
    const ObjectKey key{ns, fmt::format("d{}", number)};
    const std::string sharing =
        is_shared_ ? R"(,"sharing":{"namespaceSelector":{"matchLabels":{"team":"all"}}})" : "";
    const auto made = api_.create(
        kinds::kDatasets,
        ns,
        fmt::format(
            R"({{"metadata":{{"name":"{}"}},"spec":{{"sources":[{{"storageUri":"s3://bucket/{}","endpoint":"http://origin:9000"}}]{}}}}})",
            key.name,
            key.name,
            sharing));
    STOKER_CHECK(made.status == 201, made.body.c_str());
    const std::string uid =
        control::string_at(Json::parse(made.body)->value(), {"metadata", "uid"});
    datasets_[uid] = {key, gib(2 + schedule_.luck().below(80)), 1};
}

ControlWorld::Quota ControlWorld::draw_quota() {
    Prng& luck = schedule_.luck();
    const std::uint64_t share = capacity_.count() * cluster_->nodes().size() / 3;
    Quota quota;
    quota.nominal = Bytes{luck.below(share)};
    if (luck.below(2) == 0) {
        quota.borrowing = Bytes{luck.below(share)};
    }
    if (luck.below(2) == 0) {
        quota.lending = Bytes{luck.below(quota.nominal.count() + 1)};
    }
    return quota;
}

std::string ControlWorld::quota_spec(const Quota& quota) const {
    const auto limit = [](Bytes bytes) {
        return bytes.is_unlimited() ? std::string{"null"} : fmt::format("\"{}\"", bytes.count());
    };
    return fmt::format(
        R"("spec":{{"poolRef":{{"name":"{}"}},"nominalQuota":"{}","borrowingLimit":{},"lendingLimit":{}}})",
        kPool,
        quota.nominal.count(),
        limit(quota.borrowing),
        limit(quota.lending));
}

void ControlWorld::make_quota(const std::string& ns) {
    const Quota quota = draw_quota();
    quotas_[ns] = quota;
    const auto made = api_.create(
        kinds::kCacheQuotas,
        ns,
        fmt::format(R"({{"metadata":{{"name":"quota"}},{}}})", quota_spec(quota)));
    STOKER_CHECK(made.status == 201, made.body.c_str());
}

void ControlWorld::start_operator() {
    const std::string name = fmt::format("operator-{}", processes_++);
    operators_.push_back(
        std::make_unique<ControlOperator>(schedule_, api_, wall_, name, schedule_.luck()()));
}

void ControlWorld::start_operator_in(Duration delay) {
    during(delay, [this] {
        if (leader() == nullptr) {
            start_operator();
        }
    });
}

ControlOperator* ControlWorld::leader() const {
    return operators_.empty() || operators_.back()->is_fenced() ? nullptr : operators_.back().get();
}

std::shared_ptr<ControlStream> ControlWorld::dial(ControlSidecar& sidecar) {
    std::vector<ControlOperator*> listening;
    for (const auto& it : operators_) {
        if (it->listens()) {
            listening.push_back(it.get());
        }
    }
    if (listening.empty()) {
        return nullptr;
    }
    ControlOperator& chosen = *listening[schedule_.luck().below(listening.size())];
    const sidecar::JobConfig& job = sidecar.job();
    return chosen.accept({job.pod_namespace, "default", job.pod, job.node}, sidecar);
}

void ControlWorld::report_nodes() {
    for (auto& [name, node] : cluster_->nodes()) {
        for (const auto& it : operators_) {
            if (!node.is_gone && it->listens() && !it->is_fenced()) {
                report_node(node, *it);
            }
        }
    }
    schedule_.run_in(schedule_.draw(seconds{3}, seconds{7}), [this] { report_nodes(); });
}

void ControlWorld::report_node(ControlNode& node, ControlOperator& leader) {
    control::NodeReport report;
    report.node = node.name;
    report.boot_id = "boot-" + node.name;
    report.version = "world";
    report.received_at = wall_.now();
    report.received_wall = wall_.wall_now();
    control::PoolState pool;
    pool.pool = kPool;
    pool.path = kPath;
    pool.verdict = control::PoolVerdict::kReady;
    pool.capacity = pool.free = gib(4096);
    for (const auto& [uid, directory] : node.directories) {
        pool.directories.push_back(
            {directory.ns, uid, directory.resident, directory.leader != nullptr});
    }
    report.pools.push_back(std::move(pool));
    report.sweeps = sweeps_[node.name];
    const auto orders = leader.manager().nodes().report(std::move(report));
    if (!orders) {
        accuse("a node program's report was refused: " + orders.error().message);
        return;
    }
    for (const std::string& id : orders->confirmed_sweeps) {
        std::erase_if(sweeps_[node.name], [&](const auto& it) { return it.id == id; });
    }
    if (orders->sweep && sweeps_seen_.insert(node.name + orders->sweep->id).second) {
        sweep(node, *orders->sweep);
    }
}

void ControlWorld::sweep(ControlNode& node, const control::SweepOrder& order) {
    std::set<std::string> mounted;
    for (const auto& [key, pod] : cluster_->pods()) {
        if (pod.sidecar && pod.node == node.name) {
            for (const auto& dataset : pod.sidecar->datasets()) {
                mounted.insert(dataset.uid);
            }
        }
    }
    const std::size_t before = node.directories.size();
    std::erase_if(node.directories, [&](const auto& entry) {
        const bool kept = std::ranges::count(order.kept, entry.second.ns + "/" + entry.first) > 0 &&
                          std::ranges::count(order.expired, entry.first) == 0;
        return !kept && !mounted.contains(entry.first);
    });
    count("sweeps");
    sweeps_[node.name].push_back({order.id, true, "", before - node.directories.size()});
}

bool ControlWorld::step(TimePoint end) {
    const bool more = schedule_.step(end);
    for (std::size_t i = 0; i < operators_.size(); ++i) {
        if (operators_[i]->is_dead()) {
            schedule_.say(operators_[i]->name() + " is dead");
            operators_.erase(operators_.begin() + static_cast<std::ptrdiff_t>(i));
            start_operator_in(schedule_.draw_scale(milliseconds{100}, seconds{60}));
            break;
        }
        operators_[i]->poke();
    }
    return more;
}

void ControlWorld::heal() {
    is_calm_ = true;
    api_.faults = {};
    doubled_ = 0;
    wall_.set_offset({});
    cluster_->run_for_ever();
    std::erase_if(operators_, [](const auto& it) { return it->is_fenced(); });
    if (operators_.empty()) {
        start_operator();
    }
    for (auto& [key, pod] : cluster_->pods()) {
        if (pod.sidecar) {
            pod.sidecar->resist({});
        }
    }
    for (const ObjectKey& key : suspended_) {
        api_.merge(kinds::kTrainingJobs, key, R"({"spec":{"suspend":false}})");
    }
    suspended_.clear();
    for (const ObjectKey& key : strangers_) {
        api_.remove(kinds::kJobs, key);
    }
    strangers_.clear();
    schedule_.say("the faults have ended");
}

ControlOutcome ControlWorld::run() {
    begin_faults();
    schedule_.run_in(seconds{1}, [this] { check(); });
    while (accusation_.empty() && step(faults_end_)) {
    }
    return come_to_rest();
}

ControlOutcome ControlWorld::come_to_rest() {
    heal();
    const TimePoint bound = schedule_.now() + kLivenessBound;
    TimePoint rests_since = schedule_.now();
    auto grants = granted();
    std::string unrest_now = "not looked at";
    while (accusation_.empty()) {
        const TimePoint next = schedule_.now() + seconds{1};
        while (accusation_.empty() && step(next)) {
        }
        unrest_now = unrest();
        if (auto now = granted(); now != grants) {
            grants = std::move(now);
            unrest_now = unrest_now.empty() ? "grants still change" : unrest_now;
        }
        if (!unrest_now.empty()) {
            rests_since = schedule_.now();
        }
        if (schedule_.now() - rests_since >= kRest) {
            check_rest();
            break;
        }
        if (schedule_.now() > bound) {
            accuse("no rest: " + unrest_now);
        }
    }
    return outcome();
}

ControlOutcome ControlWorld::outcome() {
    return {accusation_, schedule_.log(), schedule_.passed(), schedule_.steps(), counts_};
}

void ControlWorld::accuse(std::string words) {
    if (accusation_.empty()) {
        schedule_.say("BROKEN: " + words);
        accusation_ = std::move(words);
    }
}

void ControlWorld::count(const std::string& what) {
    ++counts_[what];
}

}  // namespace stoker::world
