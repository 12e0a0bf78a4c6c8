#include "operator/webhook/injector.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/api_server/json_patch.h"
#include "tests/support/controller_bench.h"
#include "tests/unit/operator/controllers/make_objects.h"

namespace stoker::control {
namespace {

using ::testing::HasSubstr;

// Objects of the API server: a Deployment with its ReplicaSet, and a TrainJob with its JobSet and Job.
Object owner_object(const std::string& json) {
    return read_object(Json::parse(json).value()).value();
}

struct InjectorTest : ::testing::Test {
    InjectorTest() {
        bench.put(bench.cache.datasets(), make_digits());
        bench.put(bench.cache.pools(), make_nvme());
        ObjectMeta ml;
        ml.name = "ml";
        bench.put(bench.cache.namespaces(), ml);
        add_owner(
            R"({"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"ml",
            "uid":"rs","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web",
            "uid":"dep","controller":true}]},"spec":{"replicas":2}})");
        add_owner(
            R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"ml",
            "uid":"dep"},"spec":{"replicas":3}})");
    }

    void add_owner(const std::string& json) {
        const Object object = owner_object(json);
        bench.client.objects[object.key] = object;
    }

    // A pod of that owner, as the API server sends it.
    static AdmissionRequest request(
        const std::string& owner =
            R"({"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"rs","controller":true})",
        const std::string& dataset = "digits") {
        const std::string owners = owner.empty() ? "" : R"(,"ownerReferences":[)" + owner + "]";
        AdmissionRequest result;
        result.uid = "review-1";
        result.ns = "ml";
        result.pod =
            Json::parse(
                R"({"metadata":{"generateName":"web-1-","labels":{"stoker.dev/dataset":")" +
                dataset + R"("})" + owners +
                R"(},"spec":{"containers":[{"name":"main","image":"i"}]}})")
                .value();
        return result;
    }

    Injection inject(const AdmissionRequest& what) { return injector.inject(what).value(); }

    static std::string annotation(const AdmissionRequest& what, const Injection& injection) {
        const Json pod = test::patched(what.pod, injection.patch);
        return string_at(pod.value(), {"metadata", "annotations", "stoker.dev/not-injected"});
    }

    test::ControllerBench bench;
    OwnerFinder owners{bench.client, bench.clock};
    bool listed = true;
    Injector injector{
        {bench.cache,
         owners,
         [] {
             JobSettings settings;
             settings.sidecar_image = "sidecar:1";
             return settings;
         },
         "stoker-system",
         [this] { return listed; }}};
};

TEST_F(InjectorTest, GivesThePodOfADeploymentACache) {
    const Injection injection = inject(request());
    EXPECT_TRUE(injection.warnings.empty());
    EXPECT_TRUE(injection.events.empty());
    const Json pod = test::patched(request().pod, injection.patch);
    EXPECT_EQ(
        string_at(pod.value(), {"metadata", "labels", "stoker.dev/training-job"}),
        "deployment-web");
    EXPECT_THAT(
        string_at(pod.value(), {"metadata", "annotations", "stoker.dev/workload"}),
        HasSubstr(R"("uid":"dep")"));
}

TEST_F(InjectorTest, NamesTheMissingDatasetAndLetsThePodStart) {
    const AdmissionRequest what = request(
        R"({"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"rs","controller":true})",
        "absent");
    const Injection injection = inject(what);
    EXPECT_THAT(annotation(what, injection), HasSubstr("absent"));
    ASSERT_EQ(injection.warnings.size(), 1U);
    EXPECT_THAT(injection.warnings[0], HasSubstr("without a cache"));
    ASSERT_EQ(injection.events.size(), 2U);
    EXPECT_EQ(injection.events[0].regarding.kind, "Deployment");
    EXPECT_EQ(injection.events[1].regarding.kind, "ReplicaSet");
    EXPECT_EQ(injection.events[0].reason, "DatasetNotFound");
    EXPECT_THAT(injection.events[0].note, HasSubstr("absent"));
}

TEST_F(InjectorTest, RecordsNoEventForADryRun) {
    AdmissionRequest what = request(
        R"({"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"rs","controller":true})",
        "absent");
    what.dry_run = true;
    EXPECT_TRUE(inject(what).events.empty());
    EXPECT_EQ(inject(what).warnings.size(), 1U);
}

TEST_F(InjectorTest, RefusesADatasetThatIsNotSharedWithThePodsNamespace) {
    Dataset others = make_digits();
    others.meta.ns = "other";
    others.meta.name = "secret";
    bench.put(bench.cache.datasets(), others);
    AdmissionRequest what = request();
    what.pod = test::patched(
        what.pod,
        Json::parse(R"([{"op":"add","path":"/metadata/annotations","value":{
            "stoker.dev/dataset-namespace":"other"}},
            {"op":"replace","path":"/metadata/labels/stoker.dev~1dataset","value":"secret"}])")
            .value());
    const Injection injection = inject(what);
    EXPECT_EQ(injection.events.at(0).reason, "NotShared");
    EXPECT_NE(annotation(what, injection), "");
}

// The request for a pod with that annotation of Stoker.
AdmissionRequest with_annotation(
    AdmissionRequest what, const std::string& name, const std::string& text) {
    const Json annotations = json_object({{"stoker.dev/" + name, text}});
    what.pod =
        merged(what.pod, json_object({{"metadata", json_object({{"annotations", annotations}})}}));
    return what;
}

TEST_F(InjectorTest, MountsFilesWhereTheAnnotationSays) {
    const AdmissionRequest what = with_annotation(request(), "mount-path", "/data/train");
    const Injection injection = inject(what);
    EXPECT_EQ(injection.outcome, "cached");
    EXPECT_THAT(test::patched(what.pod, injection.patch).text(), HasSubstr("stoker-files"));
}

TEST_F(InjectorTest, SaysThatThePodRunsWithoutItsFiles) {
    const AdmissionRequest what = with_annotation(request(), "mount-path", "data");
    const Injection injection = inject(what);
    EXPECT_EQ(injection.outcome, "refused");
    EXPECT_THAT(annotation(what, injection), HasSubstr("absolute path"));
    EXPECT_EQ(injection.events.at(0).reason, "Invalid");
    EXPECT_THAT(injection.events.at(0).note, HasSubstr("without files in data"));
    EXPECT_THAT(injection.warnings.at(0), HasSubstr("without files in data"));
}

TEST_F(InjectorTest, RefusesFilesOfADatasetThatIsNotShared) {
    Dataset others = make_digits();
    others.meta.ns = "other";
    bench.put(bench.cache.datasets(), others);
    const AdmissionRequest what = with_annotation(
        with_annotation(request(), "mount-path", "/data"), "dataset-namespace", "other");
    const Injection injection = inject(what);
    EXPECT_EQ(injection.events.at(0).reason, "NotShared");
    EXPECT_EQ(
        test::patched(what.pod, injection.patch).text().find("csi.stoker.dev"), std::string::npos);
}

TEST_F(InjectorTest, FollowsATemplateThatAsksForFilesLater) {
    const AdmissionRequest first = request();
    const Json pod = test::patched(first.pod, inject(first).patch);
    const std::string text =
        string_at(pod.value(), {"metadata", "annotations", "stoker.dev/workload"});
    const WorkloadRef ref{"apps/v1", "Deployment", "web", "dep"};
    bench.put(
        bench.cache.training_jobs(),
        read_document<TrainingJob>(foreign_body("ml", ref, Json::parse(text).value())).value());
    const AdmissionRequest later = with_annotation(request(), "mount-path", "/data");
    EXPECT_THAT(test::patched(later.pod, inject(later).patch).text(), HasSubstr("stoker-files"));
    const AdmissionRequest other = with_annotation(
        later, "datasets", R"([{"name":"val","datasetRef":{"name":"more"},"mountPath":"/val"}])");
    EXPECT_EQ(inject(other).events.at(0).reason, "Invalid");
}

TEST_F(InjectorTest, FollowsATemplateThatNoLongerAsksForFiles) {
    const AdmissionRequest first = with_annotation(request(), "mount-path", "/data");
    const Json pod = test::patched(first.pod, inject(first).patch);
    const std::string text =
        string_at(pod.value(), {"metadata", "annotations", "stoker.dev/workload"});
    const WorkloadRef ref{"apps/v1", "Deployment", "web", "dep"};
    bench.put(
        bench.cache.training_jobs(),
        read_document<TrainingJob>(foreign_body("ml", ref, Json::parse(text).value())).value());
    AdmissionRequest later = request();
    later.pod = test::patched(
        later.pod,
        Json::parse(
            R"([{"op":"replace","path":"/metadata/labels/stoker.dev~1dataset","value":"digits2"},
                {"op":"add","path":"/spec/containers/0/volumeMounts",
                 "value":[{"name":"old","mountPath":"/data"}]}])")
            .value());
    const Injection injection = inject(later);
    EXPECT_EQ(injection.outcome, "cached");
    EXPECT_EQ(
        test::patched(later.pod, injection.patch).text().find("stoker-files"), std::string::npos);
}

TEST_F(InjectorTest, SaysThatAnInjectedPodBreaksARuleNow) {
    const AdmissionRequest first = with_annotation(request(), "mount-path", "/data");
    AdmissionRequest again = first;
    again.pod = test::patched(
        test::patched(first.pod, inject(first).patch),
        Json::parse(R"([{"op":"add","path":"/spec/containers/0/volumeMounts/-",
                         "value":{"name":"secrets","mountPath":"/data/keys"}}])")
            .value());
    const Injection injection = inject(again);
    EXPECT_EQ(injection.outcome, "refused");
    EXPECT_EQ(injection.patch.text(), "[]");
    EXPECT_EQ(injection.events.at(0).reason, "Invalid");
    EXPECT_THAT(injection.events.at(0).note, HasSubstr("was given its cache"));
    EXPECT_THAT(injection.events.at(0).note, HasSubstr("contain each other"));
}

TEST_F(InjectorTest, LeavesPodsOfTheControlPlaneAlone) {
    for (const std::string ns : {"stoker-system", "kube-system"}) {
        AdmissionRequest what = request();
        what.ns = ns;
        EXPECT_EQ(inject(what).patch.text(), "[]") << ns;
    }
}

TEST_F(InjectorTest, LeavesPodsWithoutTheLabelAlone) {
    AdmissionRequest what = request("", "");
    EXPECT_EQ(inject(what).patch.text(), "[]");
}

TEST_F(InjectorTest, LeavesTheOperatorsOwnPodsAlone) {
    add_owner(
        R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"mnist-a1","namespace":"ml",
        "uid":"job","ownerReferences":[{"apiVersion":"stoker.dev/v1alpha1","kind":"TrainingJob",
        "name":"mnist","uid":"j1","controller":true}]}})");
    const AdmissionRequest what = request(
        R"({"apiVersion":"batch/v1","kind":"Job","name":"mnist-a1","uid":"job","controller":true})");
    EXPECT_EQ(inject(what).patch.text(), "[]");
}

TEST_F(InjectorTest, RefusesAPodWithoutAController) {
    const AdmissionRequest what = request("");
    const Injection injection = inject(what);
    EXPECT_EQ(injection.events.at(0).reason, "NoController");
    EXPECT_NE(annotation(what, injection), "");
}

TEST_F(InjectorTest, RefusesTheNameOfAUsersOwnTrainingJob) {
    TrainingJob taken = make_running_job();
    taken.meta.name = "deployment-web";
    bench.put(bench.cache.training_jobs(), taken);
    EXPECT_EQ(inject(request()).events.at(0).reason, "NameTaken");
}

TEST_F(InjectorTest, SaysWhyThereIsNoCacheAfterUsersTurnItOffInTheTrainingJob) {
    const Injection first = inject(request());
    const Json pod = test::patched(request().pod, first.patch);
    const std::string text =
        string_at(pod.value(), {"metadata", "annotations", "stoker.dev/workload"});
    const WorkloadRef ref{"apps/v1", "Deployment", "web", "dep"};
    TrainingJob stored =
        read_document<TrainingJob>(foreign_body("ml", ref, Json::parse(text).value())).value();
    stored.spec.cache.mode = CacheMode::kOff;
    bench.put(bench.cache.training_jobs(), stored);
    const Injection second = inject(request());
    EXPECT_NE(annotation(request(), second), "");
}

TEST_F(InjectorTest, SaysWhyThereIsNoPool) {
    CachePool second = make_nvme();
    second.meta.name = "other";
    second.spec.host_path = "/var/lib/other";
    bench.put(bench.cache.pools(), second);
    const Injection injection = inject(request());
    EXPECT_NE(annotation(request(), injection), "");
}

TEST_F(InjectorTest, FailsUntilTheClusterIsListed) {
    listed = false;
    const auto injection = injector.inject(request());
    ASSERT_FALSE(injection);
    EXPECT_EQ(injection.error().code, ErrorCode::kUnavailable);
}

struct OwnerFinderTest : InjectorTest {
    ForeignWorkload find(const OwnerReference& controller) {
        return owners.find("ml", controller).value();
    }
};

TEST_F(OwnerFinderTest, WalksToTheTopmostController) {
    add_owner(
        R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"t-node-0","namespace":"ml",
        "uid":"j","ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",
        "name":"t","uid":"js","controller":true}]},"spec":{"parallelism":4}})");
    add_owner(
        R"({"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"t","namespace":"ml",
        "uid":"js","ownerReferences":[{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainJob",
        "name":"tt","uid":"tj","controller":true}]},
        "spec":{"replicatedJobs":[{"template":{"spec":{"parallelism":4}}}]}})");
    const ForeignWorkload found = find({"batch/v1", "Job", "t-node-0", "j", true});
    EXPECT_EQ(found.ref, (WorkloadRef{"trainer.kubeflow.org/v1alpha1", "TrainJob", "tt", "tj"}));
    EXPECT_EQ(found.attempt_uid, "j");
    EXPECT_EQ(found.pod_count, 4);
}

TEST_F(OwnerFinderTest, EndsAtAnUnknownKind) {
    const ForeignWorkload found = find({"example.com/v1", "Strange", "x", "u", true});
    EXPECT_EQ(found.ref.kind, "Strange");
    EXPECT_EQ(found.pod_count, std::nullopt);
    EXPECT_TRUE(bench.client.calls.empty());
}

TEST_F(OwnerFinderTest, EndsAtAnOwnerThatWasReplaced) {
    EXPECT_EQ(find({"apps/v1", "ReplicaSet", "web-1", "older", true}).ref.uid, "older");
}

TEST_F(OwnerFinderTest, AsksOnceForAllPodsOfAController) {
    const OwnerReference controller{"apps/v1", "ReplicaSet", "web-1", "rs", true};
    find(controller);
    const std::size_t asked = bench.client.count("get");
    find(controller);
    EXPECT_EQ(bench.client.count("get"), asked);
    bench.clock.advance(std::chrono::minutes{11});
    find(controller);
    EXPECT_GT(bench.client.count("get"), asked);
}

}  // namespace
}  // namespace stoker::control
