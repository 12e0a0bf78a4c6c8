// The real program with an origin that refuses it for a while: it reports the refusal to the
// operator, retries with growing delays, and continues by itself once the origin permits it.
#include <chrono>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/integration/operated_sidecar_fixture.h"

namespace stoker::test {
namespace {

using stoker::control::v1::DatasetReport;
using stoker::control::v1::MANIFEST_STATE_FAILED;
using stoker::control::v1::MANIFEST_STATE_READY;

bool is_refused(const DatasetReport& dataset) {
    return dataset.manifest_state() == MANIFEST_STATE_FAILED;
}

bool is_ready(const DatasetReport& dataset) {
    return dataset.manifest_state() == MANIFEST_STATE_READY && dataset.error().empty();
}

class SidecarAccess : public OperatedSidecarTest {
protected:
    explicit SidecarAccess(FakeS3Options options = {})
        : OperatedSidecarTest(std::move(options)) {
        control.grant("train", kTotalBytes, 0);
    }

    void expect_refused(const std::string& words) {
        ASSERT_TRUE(reports(is_refused)) << "no report of a refusal";
        EXPECT_TRUE(reports([&](const DatasetReport& dataset) {
            return is_refused(dataset) && dataset.error().find("403") != std::string::npos &&
                   dataset.error().find(words) != std::string::npos;
        })) << words;
    }

    void expect_all_samples() {
        SampleClient client = connect(1);
        ASSERT_TRUE(client.plan(1, all()).has_value());
        for (const std::uint64_t id : all()) {
            ASSERT_NO_FATAL_FAILURE(expect_sample(client, id));
        }
    }
};

TEST_F(SidecarAccess, ReportsARefusedListingAndRetriesUntilItIsAllowed) {
    FakeS3Fault refusal;
    refusal.operation = "list";
    refusal.status = 403;
    refusal.times = -1;
    s3.add_fault(refusal);
    const SystemClock clock;
    const TimePoint begin = clock.now();
    run();
    expect_refused("AccessDenied");
    ASSERT_TRUE(eventually([&] { return s3.request_count("list") >= 3; }));
    // The program retries after 1 and 2 seconds, and the next time 4 seconds later, never sooner.
    EXPECT_GE(clock.now() - begin, std::chrono::seconds{3});
    s3.clear_faults();
    EXPECT_TRUE(reports(is_ready));
    expect_all_samples();
}

TEST_F(SidecarAccess, ContinuesRefusedReadsOnceTheyAreAllowed) {
    run();
    ASSERT_TRUE(reports(is_ready));
    FakeS3Fault refusal;
    refusal.operation = "get";
    refusal.status = 403;
    refusal.times = -1;
    s3.add_fault(refusal);
    {
        SampleClient client = connect(1);
        ASSERT_TRUE(client.plan(1, all()).has_value());
        const auto fetched = client.fetch({0});
        ASSERT_TRUE(fetched.has_value());
        EXPECT_EQ(fetched->statuses, std::vector{local::FetchStatus::kOriginError});
        EXPECT_NE(fetched->message.find("AccessDenied"), std::string::npos) << fetched->message;
    }
    EXPECT_TRUE(reports([](const DatasetReport& dataset) {
        return dataset.manifest_state() == MANIFEST_STATE_READY &&
               dataset.error().find("AccessDenied") != std::string::npos;
    }));
    EXPECT_LT(s3.request_count("get"), kObjects) << "an origin that refuses is not asked for all";
    s3.clear_faults();
    SampleClient client = connect(1);
    for (const std::uint64_t id : all()) {
        // A request that is already on its way may still be refused.
        ASSERT_TRUE(eventually([&] { return client.get(id).has_value(); })) << "sample " << id;
    }
    EXPECT_TRUE(reports([was_refused = false](const DatasetReport& dataset) mutable {
        was_refused = was_refused || !dataset.error().empty();
        return was_refused && is_ready(dataset);
    })) << "the operator hears that it is over";
}

FakeS3Options with_credentials() {
    FakeS3Options options;
    options.credentials = sidecar::Credentials{"reader", "right", ""};
    return options;
}

class SidecarCredentials : public SidecarAccess {
protected:
    SidecarCredentials()
        : SidecarAccess(with_credentials()) {
        std::filesystem::create_directories(folder.path() + "/secret");
    }

    // Writes files as the kubelet writes a Secret.
    void write_secret(const std::string& id, const std::string& key) {
        for (const auto& [name, value] :
             {std::pair{"AWS_ACCESS_KEY_ID", id}, std::pair{"AWS_SECRET_ACCESS_KEY", key}}) {
            const std::string path = folder.path() + "/secret/" + name;
            std::ofstream{path + ".new"} << value;
            std::filesystem::rename(path + ".new", path);
        }
    }

    void run_with_secret() {
        run(fmt::format(", credentialsDirectory: '{}/secret'", folder.path()));
    }
};

TEST_F(SidecarCredentials, UsesACorrectedSecretWithoutARestart) {
    write_secret("reader", "wrong");
    run_with_secret();
    expect_refused("SignatureDoesNotMatch");
    write_secret("reader", "right");
    EXPECT_TRUE(reports(is_ready));
    expect_all_samples();
}

}  // namespace
}  // namespace stoker::test
