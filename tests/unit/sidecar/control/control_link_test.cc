#include "sidecar/control/control_link.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "proto/control/v1/control.grpc.pb.h"
#include "tests/support/certificates.h"
#include "tests/support/http_script_server.h"
#include "tests/support/poll.h"

namespace stoker::sidecar {
namespace {

namespace wire = ::stoker::control::v1;
using namespace std::chrono_literals;

constexpr auto kHangGuard = 60s;

// An operator that records messages and grants as the test says.
class FakeOperator final : public wire::Control::Service {
public:
    grpc::Status Attach(
        grpc::ServerContext* context,
        grpc::ServerReaderWriter<wire::OperatorMessage, wire::SidecarMessage>* stream) override {
        {
            const std::scoped_lock lock{mutex_};
            const auto bearer = context->client_metadata().find("authorization");
            tokens_.emplace_back(
                bearer == context->client_metadata().end()
                    ? "none"
                    : std::string{bearer->second.data(), bearer->second.size()});
        }
        wire::SidecarMessage message;
        while (stream->Read(&message)) {
            hear(message);
            if (message.has_hello()) {
                stream->Write(grants_);
            }
        }
        while (hangs_ && !context->IsCancelled()) {
            std::this_thread::yield();
        }
        return grpc::Status::OK;
    }

    void hear(const wire::SidecarMessage& message) {
        const std::scoped_lock lock{mutex_};
        heard_.push_back(message);
        changed_.notify_all();
    }

    template <class Condition>
    bool wait_for(Condition condition) {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, kHangGuard, condition);
    }

    std::atomic<bool> hangs_{false};  // does not end the call after the last message
    wire::OperatorMessage grants_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<wire::SidecarMessage> heard_;
    std::vector<std::string> tokens_;
};

class ControlLinkTest : public ::testing::Test {
protected:
    void SetUp() override {
        token_file_ =
            std::filesystem::temp_directory_path() / ("stoker-token-" + std::to_string(getpid()));
        write_token("first");
        certificates_ = stoker::testing::make_certificates();
        wire::Grant& grant = *operator_.grants_.add_grants();
        grant.set_dataset_uid("uid-1");
        grant.set_resident_bytes(4096);
        grant.set_valid_seconds(60);
        grant.set_reason("Granted");
        serve("127.0.0.1:0");
    }

    void TearDown() override {
        link_.reset();
        server_->Shutdown(std::chrono::system_clock::now());
        std::filesystem::remove(token_file_);
    }

    void serve(const std::string& address) {
        grpc::SslServerCredentialsOptions tls;
        tls.pem_key_cert_pairs.push_back({certificates_.key, certificates_.certificate});
        grpc::ServerBuilder builder;
        int port = 0;
        builder.AddListeningPort(address, grpc::SslServerCredentials(tls), &port);
        builder.RegisterService(&operator_);
        server_ = builder.BuildAndStart();
        ASSERT_TRUE(server_);
        port_ = port;
    }

    void write_token(const std::string& token) const {
        std::ofstream{token_file_} << token << "\n";
    }

    [[nodiscard]] ControlConfig settings() const {
        ControlConfig out;
        out.endpoint = "localhost:" + std::to_string(port_);
        out.ca_pem = certificates_.ca;
        out.token_file = token_file_;
        return out;
    }

    Result<std::unique_ptr<ControlLink>> start(
        const ControlConfig& settings, Duration report_interval = 10ms, Duration retry_min = 10ms) {
        JobConfig identity{"team-a", "resnet-a1-0-x", "node-7", "resnet", "job-uid", "", 2};
        DatasetConfig mount;
        mount.name = "train";
        mount.uid = "uid-1";
        LinkCallbacks callbacks;
        callbacks.report = [this] {
            LinkReport report;
            control::DatasetReport& dataset = report.datasets.emplace_back();
            dataset.name = "train";
            dataset.dataset_uid = "uid-1";
            dataset.leader = true;
            dataset.resident_bytes = Bytes{77};
            for (std::size_t job = 0; job < sketches_; ++job) {
                dataset.sketches.push_back({"job-" + std::to_string(job), 3, {0.75F, 0.25F}, 1.5});
            }
            report.awaits_pin = awaits_pin_;
            dataset.read_revision = "00000000000000aa";
            dataset.changed_key = "a\xff.png";
            dataset.error = "GET 'a\xff.png': 503 trop de requ\xeates";
            dataset.origin_change = control::OriginChange{std::string(2000, 'k'), 3};
            report.trainer.wait = 5ns;
            report.trainer.samples = samples_;
            if (probe_asked_ != 0) {
                report.trainer.probe = {probe_asked_, {20, 3s, Bytes{5}}, {20, 1s, Bytes{5}}};
            }
            return report;
        };
        callbacks.grant = [this](const control::Grant& grant) {
            const std::scoped_lock lock{operator_.mutex_};
            granted_.push_back(grant);
            operator_.changed_.notify_all();
        };
        callbacks.probe = [this](const control::Probe& probe) { probe_asked_ = probe.id; };
        callbacks.pin = [this](const control::RevisionPin& pin) {
            const std::scoped_lock lock{operator_.mutex_};
            pinned_.push_back(pin);
            operator_.changed_.notify_all();
        };
        LinkOptions options;
        options.report_interval = report_interval;
        options.waiting_interval = 10ms;
        options.retry_min = retry_min;
        options.retry_max = std::max<Duration>(retry_min, 50ms);
        options.unreached_max = 50ms;
        return ControlLink::start(settings, identity, {mount}, callbacks, options);
    }

    FakeOperator operator_;
    stoker::testing::TestCertificates certificates_;
    std::filesystem::path token_file_;
    std::unique_ptr<grpc::Server> server_;
    int port_ = 0;
    std::vector<control::Grant> granted_;
    std::vector<control::RevisionPin> pinned_;
    std::atomic<bool> awaits_pin_{false};
    std::atomic<std::uint64_t> samples_{0};
    std::atomic<std::size_t> sketches_{0};
    std::atomic<std::uint64_t> probe_asked_{0};
    std::unique_ptr<ControlLink> link_;
};

TEST_F(ControlLinkTest, SendsItsIdentityThenReportsInOrder) {
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 4; }));
    const std::scoped_lock lock{operator_.mutex_};
    ASSERT_TRUE(operator_.heard_[0].has_hello());
    EXPECT_EQ(operator_.heard_[0].hello().namespace_(), "team-a");
    EXPECT_EQ(operator_.heard_[0].hello().node(), "node-7");
    EXPECT_EQ(operator_.heard_[0].hello().rank(), 2);
    EXPECT_EQ(operator_.heard_[0].hello().datasets(0).dataset_uid(), "uid-1");
    for (std::size_t i = 1; i < 4; ++i) {
        ASSERT_TRUE(operator_.heard_[i].has_report());
        EXPECT_EQ(operator_.heard_[i].report().sequence(), i);
    }
    EXPECT_EQ(operator_.heard_[1].report().datasets(0).resident_bytes(), 77U);
    EXPECT_EQ(operator_.heard_[1].report().job().wait_ns(), 5U);
    EXPECT_EQ(operator_.tokens_[0], "Bearer first");
}

TEST_F(ControlLinkTest, PassesGrantsOn) {
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return !granted_.empty(); }));
    const std::scoped_lock lock{operator_.mutex_};
    EXPECT_EQ(granted_[0].dataset_uid, "uid-1");
    EXPECT_EQ(granted_[0].resident_bytes, Bytes{4096});
    EXPECT_EQ(granted_[0].valid_seconds, 60U);
    EXPECT_EQ(granted_[0].reason, "Granted");
}

TEST_F(ControlLinkTest, DropsNegativeAndNonFiniteWeights) {
    wire::Grant& grant = *operator_.grants_.mutable_grants(0);
    for (const double weight : {0.25, std::nan(""), -1.0, HUGE_VAL}) {
        wire::JobWeight& sent = *grant.add_weights();
        sent.set_training_job_uid("job-uid");
        sent.set_weight(weight);
    }
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return !granted_.empty(); }));
    const std::scoped_lock lock{operator_.mutex_};
    ASSERT_EQ(granted_[0].weights.size(), 1U);
    EXPECT_EQ(granted_[0].weights[0].job_uid, "job-uid");
    EXPECT_EQ(granted_[0].weights[0].weight, 0.25);
}

TEST_F(ControlLinkTest, DropsPinsWithMalformedRevisions) {
    for (const char* revision : {"00000000000000aa", "aa", "", "00000000000000ag"}) {
        wire::RevisionPin& pin = *operator_.grants_.add_pins();
        pin.set_dataset_uid("uid-1");
        pin.set_revision(revision);
        pin.mutable_marks()->set_samples(3);
        pin.mutable_marks()->add_digests(7);
    }
    wire::RevisionPin& marked = *operator_.grants_.add_pins();
    marked.set_revision("00000000000000bb");
    for (std::size_t i = 0; i <= domain::kManifestMarksMax; ++i) {
        marked.mutable_marks()->add_digests(i);
    }
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return pinned_.size() >= 2; }));
    const std::scoped_lock lock{operator_.mutex_};
    EXPECT_EQ(pinned_[0].dataset_uid, "uid-1");
    EXPECT_EQ(pinned_[0].revision, domain::RevisionId{0xAA});
    EXPECT_EQ(pinned_[0].marks, (domain::ManifestMarks{3, {7}}));
    EXPECT_EQ(pinned_[1].revision, domain::RevisionId{0xBB});
    EXPECT_TRUE(pinned_[1].marks.digests.empty()) << "too many";
}

TEST_F(ControlLinkTest, ReportsTheReadRevisionAndTheOriginChange) {
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 2; }));
    const std::scoped_lock lock{operator_.mutex_};
    const wire::DatasetReport& told = operator_.heard_[1].report().datasets(0);
    EXPECT_EQ(told.read_revision(), "00000000000000aa");
    EXPECT_FALSE(told.has_marks());
    EXPECT_EQ(told.changed_key(), "a?.png");
    EXPECT_EQ(told.error(), "GET 'a?.png': 503 trop de requ?tes");
    EXPECT_EQ(told.origin_change().key(), std::string(1024, 'k'));
    EXPECT_EQ(told.origin_change().keys(), 3U);
}

TEST_F(ControlLinkTest, ReportsSoonWhileAPinIsAwaited) {
    awaits_pin_ = true;
    link_ = start(settings(), 1h).value();
    EXPECT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 4; }));
}

TEST_F(ControlLinkTest, SendsTheMassesOfARankSketchOncePerConnection) {
    sketches_ = 1;
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 4; }));
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::size_t before = 0;
    {
        const std::scoped_lock lock{operator_.mutex_};
        before = operator_.heard_.size();
    }
    serve("127.0.0.1:" + std::to_string(port_));
    ASSERT_TRUE(operator_.wait_for([&] { return operator_.heard_.size() >= before + 3; }));
    const std::scoped_lock lock{operator_.mutex_};
    bool is_first = false;
    for (const auto& message : operator_.heard_) {
        if (message.has_hello()) {
            is_first = true;
            continue;
        }
        const wire::RankSketch& sketch = message.report().datasets(0).sketches(0);
        EXPECT_EQ(sketch.training_job_uid(), "job-0");
        EXPECT_EQ(sketch.revision(), 3U);
        EXPECT_EQ(sketch.volume(), 1.5);
        EXPECT_EQ(sketch.masses_size(), std::exchange(is_first, false) ? 2 : 0);
    }
}

TEST_F(ControlLinkTest, SplitsManySketchesOverSeveralReports) {
    sketches_ = 40;
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 4; }));
    const std::scoped_lock lock{operator_.mutex_};
    const int expected[] = {16, 32, 40};
    for (std::size_t i = 1; i < 4; ++i) {
        const auto& told = operator_.heard_[i].report().datasets(0).sketches();
        EXPECT_EQ(told.size(), expected[i - 1]);
        EXPECT_EQ(told[told.size() - 1].masses_size(), 2);
    }
}

TEST_F(ControlLinkTest, PassesTheOperatorsProbeOnAndReportsItsResult) {
    operator_.grants_.mutable_probe()->set_id(7);
    operator_.grants_.mutable_probe()->set_batches(20);
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] {
        return operator_.heard_.size() > 1 && operator_.heard_.back().report().job().has_probe();
    }));
    const std::scoped_lock lock{operator_.mutex_};
    const wire::ProbeResult& told = operator_.heard_.back().report().job().probe();
    EXPECT_EQ(told.id(), 7U);
    EXPECT_EQ(told.bypassed_batches(), 20U);
    EXPECT_EQ(told.bypassed_ns(), 3'000'000'000U);
    EXPECT_EQ(told.cached_ns(), 1'000'000'000U);
}

TEST_F(ControlLinkTest, ReconnectsWithTheCurrentToken) {
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 2; }));
    write_token("second");
    const std::string address = "127.0.0.1:" + std::to_string(port_);
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    serve(address);
    ASSERT_TRUE(operator_.wait_for([this] {
        return std::ranges::find(operator_.tokens_, "Bearer second") != operator_.tokens_.end();
    }));
}

TEST_F(ControlLinkTest, RetriesSoonWhileNoOperatorAnswers) {
    const auto port = static_cast<std::uint16_t>(port_);
    const std::string address = "127.0.0.1:" + std::to_string(port_);
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    {
        // Closes every connection at once; the count shows that the link has tried.
        const test::HttpScriptServer rude{[](test::ScriptConnection&) {}, "127.0.0.1", port};
        ASSERT_TRUE(rude.listening());
        link_ = start(settings(), 10ms, 1h).value();
        ASSERT_TRUE(test::eventually([&] { return rude.connection_count() > 0; }, kHangGuard));
    }
    serve(address);
    EXPECT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 2; }));
}

TEST_F(ControlLinkTest, TheSequenceContinuesOverConnections) {
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 3; }));
    const std::string address = "127.0.0.1:" + std::to_string(port_);
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
    std::size_t before = 0;
    {
        const std::scoped_lock lock{operator_.mutex_};
        before = operator_.heard_.size();
    }
    serve(address);
    ASSERT_TRUE(operator_.wait_for([&] { return operator_.heard_.size() >= before + 2; }));
    const std::scoped_lock lock{operator_.mutex_};
    std::uint64_t last = 0;
    for (const auto& message : operator_.heard_) {
        if (message.has_report()) {
            EXPECT_GT(message.report().sequence(), last);
            last = message.report().sequence();
        }
    }
}

TEST_F(ControlLinkTest, RefusesACertificateOfAnotherCa) {
    ControlConfig wrong = settings();
    wrong.ca_pem = stoker::testing::make_certificates().ca;
    link_ = start(wrong).value();
    // A link with correct settings connects meanwhile, so the wrong one has had enough time.
    const auto right = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 10; }));
    EXPECT_FALSE(link_->is_attached());
    EXPECT_TRUE(right->is_attached());
}

TEST_F(ControlLinkTest, RefusesUnusableSettingsAtStart) {
    ControlConfig without = settings();
    without.ca_pem.clear();
    EXPECT_EQ(start(without).error().code, ErrorCode::kInvalidArgument);
    without.ca_file = "/no/such/file";
    EXPECT_EQ(start(without).error().message, "cannot read /no/such/file");
    without.ca_file.clear();
    without.ca_pem = "garbage";
    EXPECT_EQ(start(without).error().message, "the operator's CA is not a PEM certificate");
}

TEST_F(ControlLinkTest, TheLastReportHasTheFinalCounts) {
    link_ = start(settings(), 1h).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 2; }));
    while (!link_->is_attached()) {
        std::this_thread::yield();
    }
    samples_ = 4711;
    link_.reset();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 3; }));
    const std::scoped_lock lock{operator_.mutex_};
    EXPECT_EQ(operator_.heard_.back().report().job().samples(), 4711U);
}

TEST_F(ControlLinkTest, AHangingOperatorDoesNotDelayItsEnd) {
    operator_.hangs_ = true;
    link_ = start(settings()).value();
    ASSERT_TRUE(operator_.wait_for([this] { return operator_.heard_.size() >= 2; }));
    link_.reset();  // must not hang: the test runner's time limit is the assertion
}

TEST_F(ControlLinkTest, StopsPromptlyWhileNoOperatorAnswers) {
    server_->Shutdown(std::chrono::system_clock::now());
    link_ = start(settings()).value();
    link_.reset();
}

}  // namespace
}  // namespace stoker::sidecar
