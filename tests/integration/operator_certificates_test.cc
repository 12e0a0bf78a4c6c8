// A real operator that is its own CA.
#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/kube/access.h"
#include "tests/integration/operator_fixture.h"

namespace stoker::test {
namespace {

using control::ObjectKey;
using ::testing::HasSubstr;

const ObjectKey kSecret{"stoker-system", "stoker-control-ca"};

class OperatorCertificates : public OperatorTest {
protected:
    OperatorCertificates() { start_own(); }

    void start_own(bool metrics = true) {
        RunningOperator::Options options;
        options.api_server = cluster.api().url();
        options.own_ca = true;
        options.metrics = metrics;
        operator_.reset();
        operator_ = std::make_unique<RunningOperator>(options);
    }

    std::string bundle() {
        const auto secret = cluster.api().with_model(
            [](ApiServerModel& model) { return model.find(kinds::kSecrets, kSecret); });
        return secret
                   ? control::base64_decode(control::string_at(secret->value(), {"data", "ca.crt"}))
                         .value()
                   : "";
    }

    grpc::Status attach_with(const std::string& ca) {
        const std::string pod = FakeCluster::pod_name("mnist-a1", 0);
        cluster.add_token("token.of." + pod, pod, "node-1");
        testing::SidecarClient sidecar(operator_->wait_control_address(), ca, "token.of." + pod);
        sidecar.hello(testing::make_hello("ml", pod));
        return sidecar.finish();
    }
};

TEST_F(OperatorCertificates, NewJobTrustsTheOperatorsCa) {
    run_job("mnist");
    const std::string ca = bundle();
    ASSERT_THAT(ca, HasSubstr("BEGIN CERTIFICATE"));
    const std::string escaped = web::json::value(ca).serialize();
    EXPECT_THAT(
        cluster.find(kinds::kJobs, "mnist-a1")->text(),
        HasSubstr(fmt::format(R"("name":"STOKER_CONTROL_CA","value":{})", escaped)));
    EXPECT_TRUE(attach_with(ca).ok());
    EXPECT_EQ(attach_with(operator_->ca()).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(OperatorCertificates, ExposesItsCertificateExpiry) {
    ASSERT_TRUE(operator_->wait_ready());
    const std::string body = operator_->http_body("/metrics");
    const std::string name = "\nstoker_control_certificate_expires_seconds ";
    const std::size_t at = body.find(name);
    ASSERT_NE(at, std::string::npos);
    const std::chrono::duration<double> left{
        std::stod(body.substr(at + name.size())) -
        std::chrono::duration<double>(SystemClock{}.wall_now().time_since_epoch()).count()};
    EXPECT_GT(left, std::chrono::hours{23});
    EXPECT_LE(left, std::chrono::hours{24});
}

TEST_F(OperatorCertificates, ReadsNoOtherSecret) {
    run_job("mnist");
    ASSERT_TRUE(attach_with(bundle()).ok());
    for (const SeenRequest& request : cluster.api().seen()) {
        if (request.target.find("/secrets") != std::string::npos) {
            EXPECT_THAT(request.target, HasSubstr("/namespaces/stoker-system/secrets"));
            EXPECT_TRUE(request.method == "POST" || request.target.ends_with(kSecret.name))
                << request.method << " " << request.target;
        }
    }
}

TEST_F(OperatorCertificates, NotReadyAndCreatesNoJobWithoutItsSecret) {
    operator_.reset();
    cluster.api().erase(kinds::kSecrets, kSecret);
    Fault refused;
    refused.target_contains = "/secrets";
    refused.status = 403;
    refused.times = -1;
    refused.body = R"({"kind":"Status","reason":"Forbidden","message":"no secrets for you"})";
    cluster.api().add_fault(refused);
    start_own();
    cluster.add_training_job("mnist");
    ASSERT_TRUE(eventually(
        [&] { return operator_->http_body("/readyz") == "not listed yet: certificate\n"; }));
    EXPECT_EQ(cluster.find(kinds::kJobs, "mnist-a1"), std::nullopt);
    cluster.api().clear_faults();
    EXPECT_TRUE(operator_->wait_ready());
    EXPECT_TRUE(wait_object(kinds::kJobs, "mnist-a1"));
}

TEST_F(OperatorCertificates, ServesProbesWithoutMetrics) {
    start_own(false);
    EXPECT_TRUE(operator_->wait_ready());
    EXPECT_EQ(operator_->http_status("/healthz"), 200);
    EXPECT_FALSE(operator_->serves_metrics());
}

}  // namespace
}  // namespace stoker::test
