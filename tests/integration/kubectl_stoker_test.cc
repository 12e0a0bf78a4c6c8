// The real kubectl-stoker as a process against an API server on loopback, and against a real
// operator where it matters.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/base/check.h"
#include "operator/core/allocation/plan_allocation.h"
#include "operator/core/allocation/snapshot.h"
#include "operator/kube/request.h"
#include "tests/integration/kubectl_plugin.h"
#include "tests/integration/kubectl_stoker_fixture.h"
#include "tests/integration/operator_fixture.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {
namespace {

TEST_F(KubectlStoker, LeavesNoSocketBehind) {
    EXPECT_EQ(plugin.run("top").status, 0);
    EXPECT_EQ(plugin.folders_left(), 0);
}

TEST_F(KubectlStoker, ReportsMissingKubectl) {
    plugin.remove_kubectl();
    const Answer answer = plugin.run("top");
    EXPECT_EQ(answer.status, 1);
    EXPECT_EQ(answer.err, "error: kubectl-stoker needs kubectl; it is not in $PATH\n");
    EXPECT_EQ(plugin.folders_left(), 0);
}

// With `exec` the sleeping program replaces the shell, so that the kill hits the program itself.
TEST_F(KubectlStoker, SilentKubectlTimesOut) {
    for (const std::string says : {"", "printf Starting; ", "trap '' TERM; "}) {
        plugin.set_kubectl("#!/bin/sh\n" + says + "exec /bin/sleep 90\n");
        const Answer answer = plugin.run("top -n ml --request-timeout 200ms");
        EXPECT_EQ(answer.status, 1);
        EXPECT_THAT(answer.err, HasSubstr("did not start within the request timeout"));
        EXPECT_EQ(plugin.folders_left(), 0);
    }
    EXPECT_EQ(plugin.run("top --request-timeout 200ms").status, 1) << "it asks for the namespace";
}

TEST_F(KubectlStoker, ExplainsWithTheLeadersAnswer) {
    lead_with(snapshot());
    const Answer answer = plugin.run("why tj/mnist");
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_EQ(answer.err, "");
    EXPECT_THAT(answer.out, HasSubstr("Reason: LowerMarginalBenefit"));
    EXPECT_THAT(answer.out, HasSubstr("ml/other"));
    EXPECT_THAT(answer.out, HasSubstr("What would change it"));
    EXPECT_EQ(
        cluster.api().count(
            "GET",
            "/api/v1/namespaces/stoker-system/pods/https:operator-0:8443/proxy/debug/allocation"),
        1U);
    EXPECT_EQ(cluster.api().count("POST", "/serviceaccounts/stoker-explain/token"), 1U);
}

TEST_F(KubectlStoker, MissingTokenRightExplainsTheFix) {
    lead_with(snapshot());
    Fault forbidden;
    forbidden.target_contains = "/token";
    forbidden.status = 403;
    forbidden.body =
        R"({"kind":"Status","reason":"Forbidden","message":"user ann may not create tokens"})";
    cluster.api().add_fault(forbidden);
    const Answer answer = plugin.run("what-if --add 1Gi --pool nvme");
    EXPECT_EQ(answer.status, 1);
    EXPECT_THAT(answer.err, HasSubstr("ServiceAccount stoker-system/stoker-explain"));
    EXPECT_THAT(answer.err, HasSubstr("user ann may not create tokens"));
    EXPECT_THAT(answer.err, HasSubstr("rbac.explain.subjects"));
    EXPECT_EQ(cluster.api().count("GET", "/proxy/"), 0U);
}

TEST_F(KubectlStoker, OtherReleaseUsesItsOwnAccountAndPort) {
    lead_with(snapshot());
    plugin.run(
        "what-if --add 1Gi --pool nvme --operator-pod x --lease a-operator --operator-port 1");
    EXPECT_EQ(cluster.api().count("POST", "/serviceaccounts/a-explain/token"), 1U);
    EXPECT_EQ(cluster.api().count("GET", "/pods/https:x:1/proxy/"), 1U);
}

TEST_F(KubectlStoker, WhatIfRunsThePlannerOnTheOperatorsSnapshot) {
    lead_with(snapshot());
    const Answer answer = plugin.run("what-if --delete tj/other --json");
    EXPECT_EQ(answer.status, 0) << answer.err;
    const auto json = Json::parse(answer.out);
    ASSERT_TRUE(json) << answer.out;
    EXPECT_THAT(answer.out, HasSubstr(R"("changes":["without job ml/other"])"));
    const Answer wrong = plugin.run("what-if --delete tj/nobody");
    EXPECT_EQ(wrong.status, 1);
    EXPECT_THAT(wrong.err, HasSubstr("no job ml/nobody uses a cache now; jobs that do: ml/mnist"));
}

TEST_F(KubectlStoker, WithoutDebugRightsWhyUsesTheStatusAndWhatIfExplainsTheFix) {
    set_status();
    set_holder("operator-0_00c0ffee");
    Fault forbidden;
    forbidden.target_contains = "/proxy/";
    forbidden.times = -1;
    forbidden.status = 403;
    forbidden.body =
        R"({"kind":"Status","reason":"Forbidden","message":"user ann may not get pods/proxy"})";
    cluster.api().add_fault(forbidden);
    const Answer why = plugin.run("why mnist");
    EXPECT_EQ(why.status, 0) << why.err;
    EXPECT_THAT(why.out, HasSubstr("ml/mnist: 1Gi of 3Gi wanted, in pool nvme\nReason: PoolFull"));
    EXPECT_THAT(why.err, HasSubstr("what the job's status says"));
    EXPECT_THAT(why.err, HasSubstr("user ann may not get pods/proxy"));
    const Answer what_if = plugin.run("what-if --add 1Gi --pool nvme");
    EXPECT_EQ(what_if.status, 1);
    EXPECT_EQ(what_if.out, "");
    EXPECT_THAT(what_if.err, HasSubstr("rbac.explain.subjects"));
}

TEST_F(KubectlStoker, TopAndQuotaWorkWithoutOperator) {
    set_status();
    const Answer top = plugin.run("top");
    EXPECT_EQ(top.status, 0) << top.err;
    EXPECT_THAT(top.out, HasSubstr("mnist"));
    EXPECT_THAT(top.out, HasSubstr("PoolFull"));
    const Answer quota = plugin.run("quota -A");
    EXPECT_EQ(quota.status, 0) << quota.err;
    EXPECT_THAT(quota.out, HasSubstr("└─ ml"));
    EXPECT_THAT(quota.out, HasSubstr("2Gi"));
    EXPECT_EQ(cluster.api().count("GET", "/proxy/"), 0U);
    EXPECT_THAT(plugin.run("top -n empty").err, HasSubstr("No resources found in empty namespace"));
}

TEST_F(KubectlStoker, QuotaOmitsPoolsWithoutListRight) {
    Fault forbidden;
    forbidden.target_contains = "/cachepools";
    forbidden.times = -1;
    forbidden.status = 403;
    forbidden.body = R"({"kind":"Status","reason":"Forbidden","message":"no"})";
    cluster.api().add_fault(forbidden);
    const Answer quota = plugin.run("quota");
    EXPECT_EQ(quota.status, 0) << quota.err;
    EXPECT_THAT(quota.err, HasSubstr("you may not list CachePools"));
    EXPECT_THAT(quota.out, HasSubstr("└─ ml"));
}

TEST_F(KubectlStoker, MissingLeaseErrorNamesTheLease) {
    const Answer answer = plugin.run("what-if --add 1Gi --pool nvme");
    EXPECT_EQ(answer.status, 1);
    EXPECT_THAT(answer.err, HasSubstr("there is no Lease stoker-system/stoker-operator"));
    EXPECT_THAT(answer.err, HasSubstr("--operator-namespace"));
}

TEST_F(KubectlStoker, FreeLeaseMeansNoLeader) {
    set_holder("");
    EXPECT_THAT(
        plugin.run("what-if --add 1Gi --pool nvme").err, HasSubstr("no operator leads now"));
}

TEST_F(KubectlStoker, UnknownPageMeansOperatorTooOld) {
    set_holder("operator-0_00c0ffee");
    answer_with(404, "only /metrics, /healthz and /readyz are here\n");
    const Answer answer = plugin.run("what-if --add 1Gi --pool nvme");
    EXPECT_EQ(answer.status, 1);
    EXPECT_THAT(answer.err, HasSubstr("older than this program"));
    EXPECT_THAT(answer.err, HasSubstr("upgrade it"));
}

TEST_F(KubectlStoker, FollowsAChangeOfLeader) {
    lead_with(snapshot());
    cluster.api().set_pod_proxy([this](const std::string& pod, const auto&, const auto&) {
        if (pod == "https:operator-1:8443") {
            return ModelAnswer{200, control::print_snapshot(snapshot()), std::nullopt};
        }
        // The Lease changes hands during the request to the first leader.
        return ModelAnswer{503, R"({"leader":"operator-1_2","message":"not me"})", std::nullopt};
    });
    Fault first;
    first.target_contains = "/leases/";
    first.status = 200;
    first.body =
        R"({"metadata":{"name":"stoker-operator"},"spec":{"holderIdentity":"operator-9_1"}})";
    cluster.api().add_fault(first);
    cluster.api().merge(
        kinds::kLeases,
        {"stoker-system", "stoker-operator"},
        R"({"spec":{"holderIdentity":"operator-1_2"}})");
    const Answer answer = plugin.run("what-if --add 1Gi --pool nvme");
    EXPECT_EQ(answer.status, 0) << answer.err;
    EXPECT_EQ(cluster.api().count("GET", "/pods/https:operator-9:8443/proxy"), 1U);
    EXPECT_EQ(cluster.api().count("GET", "/pods/https:operator-1:8443/proxy"), 1U);
}

TEST_F(KubectlStoker, WarnsOfAnOldPlanAndOfOneThatThisVersionWouldNotMake) {
    AllocationSnapshot old = snapshot();
    old.served_at = old.decided_at + std::chrono::seconds{75};
    old.plan.jobs[0].granted = gib(4);
    lead_with(old);
    const Answer answer = plugin.run("why mnist");
    EXPECT_EQ(answer.status, 0);
    EXPECT_THAT(answer.err, HasSubstr("decided this 75 s ago"));
    EXPECT_THAT(answer.err, HasSubstr("decides otherwise"));
}

TEST_F(KubectlStoker, ExitStatusMatchesKubectl) {
    EXPECT_EQ(plugin.run("why tj/none").status, 1);
    EXPECT_THAT(plugin.run("why tj/none").err, HasSubstr("none"));
    EXPECT_THAT(plugin.run("tpo").err, HasSubstr("See 'kubectl stoker --help' for usage."));
    cluster.api().set_down(true);
    const Answer down = plugin.run("top --request-timeout 2s");
    EXPECT_EQ(down.status, 1);
    EXPECT_THAT(down.err, HasSubstr("error: "));
    EXPECT_THAT(down.err, Not(HasSubstr("No resources found")));
}

// A real operator allocates, writes the status and the metrics; the plugin reads all three.
class KubectlStokerWithOperator : public OperatorTest {
protected:
    KubectlStokerWithOperator() {
        allow("system:serviceaccount:stoker-system:stoker-explain");
        cluster.api().set_pod_proxy(
            [this](const std::string& pod, const std::string& path, const auto& headers) {
                STOKER_CHECK(pod == "https:operator-0:8443", pod.c_str());
                http::Headers passed;
                for (const auto& [name, value] : headers) {
                    passed.push_back({name, value});
                }
                const auto answer = operator_->debug_get(path, passed);
                return answer ? ModelAnswer{answer->status, answer->body, std::nullopt}
                              : ModelAnswer{503, answer.error().message, std::nullopt};
            });
    }

    void allow(const std::string& user) {
        cluster.api().with_model(
            [&](ApiServerModel& model) { model.allow(user, "get", "/debug/allocation"); });
    }

    // Adds a token of `user` with this audience.
    void add_token(const std::string& token, const std::string& user, const std::string& audience) {
        const auto json = Json::parse(fmt::format(R"({{"username":"{}"}})", user)).value();
        cluster.api().with_model(
            [&](ApiServerModel& model) { model.add_token(token, json, {audience}); });
    }

    int status_with(http::Headers headers) {
        const auto answer = operator_->debug_get("/debug/allocation", std::move(headers));
        return answer ? answer->status : 0;
    }

    // The value of stoker_job_granted_bytes.
    std::int64_t metric(const std::string& job) {
        const std::string name =
            fmt::format("stoker_job_granted_bytes{{namespace=\"ml\",training_job=\"{}\"}} ", job);
        const std::string page = operator_->http_body("/metrics");
        const std::size_t at = page.find(name);
        return at == std::string::npos ? -1 : std::stoll(page.substr(at + name.size()));
    }

    Plugin plugin{cluster.api().url()};
};

TEST_F(KubectlStokerWithOperator, WhyAgreesWithTheStatusAndTheMetrics) {
    cluster.add(
        kinds::kCacheQuotas,
        "quota",
        R"({"poolRef":{"name":"nvme"},"nominalQuota":"10Ki","borrowingLimit":"0"})");
    run_job("mnist", 1, R"(,"cache":{"mode":"Fixed","maxBytes":"1Mi"})");
    const auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 0)));
    ASSERT_EQ(
        wait_condition(kinds::kTrainingJobs, "mnist", "CacheAllocated", "True QuotaExhausted"),
        "True QuotaExhausted");
    // Statuses and metrics follow the plan with a delay: wait for them.
    Answer answer;
    const bool agree = eventually(
        [&] {
            answer = plugin.run("why tj/mnist --json");
            const auto json = Json::parse(answer.out);
            const auto cache = cluster.training_job("mnist").status.cache;
            if (!json || !cache) {
                return false;
            }
            const auto& root = json->value();
            return control::string_at(root, {"source"}) == "operator" &&
                   control::integer_at(root, {"allocation", "grantedBytes"}) == 10'240 &&
                   control::string_at(root, {"allocation", "reason"}) == "QuotaExhausted" &&
                   cache->allocated_bytes == 10'240 && metric("mnist") == 10'240 &&
                   control::string_at(root, {"allocation", "message"}) ==
                       cluster.message(kinds::kTrainingJobs, "mnist", "CacheAllocated");
        },
        std::chrono::seconds{60});
    EXPECT_TRUE(agree) << answer.out << answer.err;
    EXPECT_EQ(answer.err, "") << "this program decides as the operator does";
}

TEST_F(KubectlStokerWithOperator, UnauthorizedUsersGetNoDebugPages) {
    ASSERT_TRUE(operator_->wait_ready());
    const std::string explain = "system:serviceaccount:stoker-system:stoker-explain";
    const std::string tenant = "system:serviceaccount:ml:default";
    add_token("good.of.explain", explain, "debug.stoker.dev");
    add_token("sidecars.of.explain", explain, "stoker.dev");
    add_token("some.of.tenant", tenant, "debug.stoker.dev");
    EXPECT_EQ(status_with({}), 401);
    EXPECT_EQ(status_with({{"X-Stoker-Token", "not.a.token"}}), 401);
    EXPECT_EQ(status_with({{"X-Stoker-Token", "sidecars.of.explain"}}), 401);
    EXPECT_EQ(status_with({{"X-Stoker-Token", "some.of.tenant"}}), 403);
    EXPECT_NE(status_with({{"X-Stoker-Token", "good.of.explain"}}), 401);
    ASSERT_TRUE(eventually([&] {
        return status_with({{"Authorization", "Bearer good.of.explain"}}) == 200;
    }));
    EXPECT_EQ(operator_->http_status("/debug/allocation"), 404) << "the port for metrics";
    EXPECT_EQ(operator_->debug_get("/metrics")->status, 401);
}

TEST_F(KubectlStokerWithOperator, WhatIfPredictsTheOperatorsPlan) {
    const std::string quota =
        R"({"spec":{"poolRef":{"name":"nvme"},"nominalQuota":"20Ki","borrowingLimit":"0"}})";
    cluster.add(
        kinds::kCacheQuotas,
        "quota",
        R"({"poolRef":{"name":"nvme"},"nominalQuota":"10Ki","borrowingLimit":"0"})");
    run_job("mnist", 1, R"(,"cache":{"mode":"Fixed","maxBytes":"1Mi"})");
    const auto sidecar = attach("mnist");
    ASSERT_TRUE(sidecar->report(report_of(1, 0)));
    Answer answer;
    EXPECT_TRUE(eventually(
        [&] {
            answer = plugin.run("what-if --nominal ml=20Ki --pool nvme --json");
            return answer.out.find(R"("grantedBytes":20480)") != std::string::npos;
        },
        std::chrono::seconds{60}))
        << answer.out << answer.err;
    cluster.change(kinds::kCacheQuotas, "quota", quota);
    std::uint64_t sequence = 1;
    EXPECT_TRUE(eventually(
        [&] {
            // A grant grows only after the sidecar has confirmed the previous one.
            const auto cache = cluster.training_job("mnist").status.cache;
            auto report = report_of(++sequence, 0);
            const auto granted = cache ? static_cast<std::uint64_t>(cache->allocated_bytes) : 0;
            report.mutable_datasets(0)->set_granted_bytes(granted);
            return sidecar->report(report) && granted == 20'480;
        },
        std::chrono::seconds{60}));
}

}  // namespace
}  // namespace stoker::test
