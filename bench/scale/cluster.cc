#include "bench/scale/cluster.h"

#include <memory>
#include <string>

#include <fmt/format.h>

namespace stoker::bench {

using control::ObjectKey;
namespace kinds = control::kinds;

namespace {

constexpr const char* kBorn = R"("creationTimestamp":"2026-01-01T00:00:00Z")";

std::string metadata(const ObjectKey& key, const std::string& uid, const std::string& more = "") {
    const std::string ns = key.ns.empty() ? "" : fmt::format(R"("namespace":"{}",)", key.ns);
    return fmt::format(
        R"("name":"{}",{}"uid":"{}","generation":1,{}{})", key.name, ns, uid, kBorn, more);
}

std::string owned_by(
    const char* version, const char* kind, const std::string& name, const std::string& uid) {
    return fmt::format(
        R"(,"ownerReferences":[{{"apiVersion":"{}","kind":"{}","name":"{}","uid":"{}","controller":true,"blockOwnerDeletion":true}}])",
        version,
        kind,
        name,
        uid);
}

StoredObject simple(const ObjectKey& key, const std::string& uid, const std::string& spec) {
    StoredObject object;
    object.meta = metadata(key, uid);
    object.body = spec.empty() ? "" : ",\"spec\":" + spec;
    return object;
}

std::string node_name(std::size_t number) {
    return fmt::format("node-{:04}", number);
}

// The fields of a real pod that the operator does not read: about 5 KB.
Text managed_fields() {
    std::string fields;
    for (int i = 0; i < 60; ++i) {
        fields += fmt::format(R"({}"f:field{}":{{"f:a":{{}},"f:b":{{}}}})", i == 0 ? "" : ",", i);
    }
    return std::make_shared<const std::string>(fmt::format(
        R"(,"managedFields":[{{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{{{}}},"subresource":"status"}}])",
        fields));
}

Text pod_spec_rest() {
    std::string env;
    for (int i = 0; i < 25; ++i) {
        env += fmt::format(
            R"({}{{"name":"VARIABLE_{}","value":"some-text-of-usual-length-{}"}})",
            i == 0 ? "" : ",",
            i,
            i);
    }
    const std::string mounts =
        R"("volumeMounts":[{"name":"data","mountPath":"/stoker/data","readOnly":true},{"name":"socket","mountPath":"/run/stoker"},{"name":"kube-api-access","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}])";
    return std::make_shared<const std::string>(fmt::format(
        R"(,"restartPolicy":"Never","serviceAccountName":"default","schedulerName":"default-scheduler","containers":[{{"name":"trainer","image":"registry.example.com/team/trainer:1.2.3","command":["torchrun","train.py"],"env":[{}],{},"resources":{{"limits":{{"cpu":"8","memory":"64Gi","nvidia.com/gpu":"1"}}}}}}],"initContainers":[{{"name":"stoker-sidecar","image":"stoker-sidecar:1","restartPolicy":"Always",{}}}],"tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}})",
        env,
        mounts,
        mounts));
}

const char* const kPodStatus =
    R"({"phase":"Running","hostIP":"10.0.0.1","podIP":"10.1.0.1","qosClass":"Burstable","startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"ContainersReady","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],"containerStatuses":[{"name":"trainer","started":true,"ready":true,"restartCount":0,"image":"registry.example.com/team/trainer:1.2.3","imageID":"registry.example.com/team/trainer@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","containerID":"containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}],"initContainerStatuses":[{"name":"stoker-sidecar","started":true,"ready":true,"restartCount":0,"image":"stoker-sidecar:1","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]})";

std::string job_spec(const std::string& dataset, std::size_t ranks) {
    return fmt::format(
        R"({{"trainer":{{"image":"trainer:1","numNodes":{}}},"datasets":[{{"name":"train","datasetRef":{{"name":"{}"}}}}]}})",
        ranks,
        dataset);
}

class Filler {
public:
    Filler(FakeApi& api, const ClusterSize& size)
        : api_(api),
          size_(size),
          ranks_(size.pods / size.jobs) {}

    void add_cluster() {
        api_.put(
            kinds::kCachePools,
            {"", "nvme"},
            simple(
                {"", "nvme"},
                "pool-1",
                R"({"capacityPerNode":"1600Gi","volume":{"hostPath":{"path":"/var/lib/stoker"}}})"));
        for (std::size_t i = 0; i < size_.nodes; ++i) {
            const ObjectKey key{"", node_name(i)};
            StoredObject node = simple(key, "node-" + key.name, "{}");
            node.status = fmt::format(
                R"({{"nodeInfo":{{"bootID":"boot-{}"}},"conditions":[{{"type":"Ready","status":"True"}}]}})",
                i);
            api_.put(kinds::kNodes, key, node);
        }
        add_namespaces();
    }

    void add_namespaces() {
        for (std::size_t i = 0; i < size_.namespaces; ++i) {
            const std::string ns = fmt::format("ns-{}", i);
            api_.put(kinds::kNamespaces, {"", ns}, simple({"", ns}, "uid-" + ns, "{}"));
            api_.put(
                kinds::kCacheQuotas,
                {ns, "nvme"},
                simple(
                    {ns, "nvme"}, "quota-" + ns, R"({"poolRef":"nvme","nominalQuota":"16000Gi"})"));
        }
        for (std::size_t i = 0; i < size_.datasets; ++i) {
            const ObjectKey key{
                fmt::format("ns-{}", i % size_.namespaces), fmt::format("set-{}", i)};
            api_.put(
                kinds::kDatasets,
                key,
                simple(
                    key,
                    fmt::format("dataset-{}", i),
                    fmt::format(
                        R"({{"sources":[{{"storageUri":"s3://bucket/set-{}","endpoint":"http://origin:9000"}}]}})",
                        i)));
        }
    }

    PlacedJob add_job(std::size_t number) {
        PlacedJob job;
        const std::size_t set = number % size_.datasets;
        job.ns = fmt::format("ns-{}", set % size_.namespaces);
        job.name = fmt::format("job-{}", number);
        job.uid = fmt::format("0000aaaa-bbbb-cccc-dddd-{:012}", number);
        job.dataset_uid = fmt::format("dataset-{}", set);
        StoredObject object =
            simple({job.ns, job.name}, job.uid, job_spec(fmt::format("set-{}", set), ranks_));
        object.status = R"({"attempt":1,"observedGeneration":1})";
        api_.put(kinds::kTrainingJobs, {job.ns, job.name}, object);
        add_children(job);
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            add_pod(job, number, rank);
        }
        return job;
    }

private:
    void add_children(const PlacedJob& job) {
        const std::string labels = fmt::format(
            R"(,"labels":{{"app.kubernetes.io/managed-by":"stoker","stoker.dev/training-job":"{}","stoker.dev/attempt":"1"}})",
            job.name);
        const std::string owner = owned_by("stoker.dev/v1alpha1", "TrainingJob", job.name, job.uid);
        const ObjectKey child{job.ns, job.name + "-a1"};
        StoredObject object = simple(
            child,
            "j-" + job.uid,
            fmt::format(R"({{"completions":{0},"parallelism":{0}}})", ranks_));
        object.meta += labels + owner;
        object.status = fmt::format(
            R"({{"active":{0},"ready":{0},"startTime":"2026-01-01T00:00:00Z"}})", ranks_);
        api_.put(kinds::kJobs, child, object);
        const ObjectKey service{job.ns, job.name + "-ranks"};
        StoredObject ranks = simple(service, "s-" + job.uid, R"({"clusterIP":"None"})");
        ranks.meta += labels + owner;
        api_.put(kinds::kServices, service, ranks);
    }

    void add_pod(PlacedJob& job, std::size_t number, std::size_t rank) {
        const ObjectKey key{job.ns, fmt::format("{}-a1-{}-x", job.name, rank)};
        const std::string uid = fmt::format("p{}-{}", rank, job.uid);
        // Jobs on the same dataset start on different nodes.
        const std::string node =
            node_name((number * 7 + number / 1000 * 31 + rank * 13) % size_.nodes);
        StoredObject pod;
        pod.meta = metadata(
            key,
            uid,
            fmt::format(
                R"(,"generateName":"{0}-a1-{1}-","labels":{{"app.kubernetes.io/managed-by":"stoker","app.kubernetes.io/name":"training-job","batch.kubernetes.io/controller-uid":"j-{2}","batch.kubernetes.io/job-completion-index":"{1}","batch.kubernetes.io/job-name":"{0}-a1","controller-uid":"j-{2}","job-name":"{0}-a1","stoker.dev/training-job":"{0}","stoker.dev/attempt":"1"}},"annotations":{{"batch.kubernetes.io/job-completion-index":"{1}","some.company/note":"a text that people write"}})",
                job.name,
                rank,
                job.uid) +
                owned_by("batch/v1", "Job", job.name + "-a1", "j-" + job.uid));
        pod.meta_extra = managed_;
        pod.body = fmt::format(
            R"(,"spec":{{"nodeName":"{}","volumes":[{{"name":"data","csi":{{"driver":"csi.stoker.dev","readOnly":true,"volumeAttributes":{{"namespace":"{}","uid":"{}","view":"data"}}}}}},{{"name":"control","csi":{{"driver":"csi.stoker.dev","volumeAttributes":{{"namespace":"{}","uid":"{}","view":"owner"}}}}}}])",
            node,
            job.ns,
            job.dataset_uid,
            job.ns,
            job.dataset_uid);
        pod.tail = spec_rest_;
        pod.status = kPodStatus;
        api_.put(kinds::kPods, key, pod);
        if (rank == 0) {
            job.pod = key.name;
            job.pod_uid = uid;
            job.node = node;
        }
    }

    FakeApi& api_;
    const ClusterSize& size_;
    std::size_t ranks_;
    Text managed_ = managed_fields();
    Text spec_rest_ = pod_spec_rest();
};

}  // namespace

std::vector<PlacedJob> fill_cluster(FakeApi& api, const ClusterSize& size) {
    Filler filler(api, size);
    filler.add_cluster();
    std::vector<PlacedJob> jobs;
    for (std::size_t i = 0; i < size.jobs; ++i) {
        jobs.push_back(filler.add_job(i));
    }
    return jobs;
}

void add_new_job(FakeApi& api, std::size_t number, const ClusterSize& size) {
    const std::size_t set = number % size.datasets;
    const ObjectKey key{fmt::format("ns-{}", set % size.namespaces), fmt::format("new-{}", number)};
    api.put(
        kinds::kTrainingJobs,
        key,
        simple(key, "uid-" + key.name, job_spec(fmt::format("set-{}", set), 1)));
}

}  // namespace stoker::bench
