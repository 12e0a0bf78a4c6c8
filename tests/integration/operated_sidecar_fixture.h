#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "tests/support/fake_operator.h"
#include "tests/support/fake_s3.h"
#include "tests/support/poll.h"
#include "tests/support/sample_client.h"
#include "tests/support/sidecar_process.h"
#include "tests/support/temp_folder.h"

namespace stoker::test {

// The real program stoker-sidecar between a fake operator and an S3 server, with one dataset
// "train" of equal objects. Nothing runs before run().
class OperatedSidecarTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t kObjects = 500;
    static constexpr std::uint64_t kObjectBytes = 2000;
    static constexpr std::uint64_t kTotalBytes = kObjects * kObjectBytes;

    explicit OperatedSidecarTest(FakeS3Options options = {})
        : s3(std::move(options)) {
        for (std::uint64_t id = 0; id < kObjects; ++id) {
            s3.put("mnist", fmt::format("train/{:04}", id), bytes_of(id));
        }
        std::ofstream{folder.path() + "/ca.pem"} << control.ca();
        std::ofstream{folder.path() + "/token"} << "a.token\n";
    }

    static std::string bytes_of(std::uint64_t id) { return fmt::format("{:0>2000}", id); }

    // `source`: more fields of the dataset's `origin`, each after a comma. `more`: further lines of
    // the dataset's entry in sidecar.yaml.
    void run(const std::string& source = "", const std::string& more = "") {
        const std::string path = folder.path() + "/sidecar.yaml";
        std::ofstream{path} << fmt::format(
            "socket: {0}/s.sock\n"
            "control: {{endpoint: '{1}', caFile: {0}/ca.pem, tokenFile: {0}/token}}\n"
            "datasets:\n"
            "- name: train\n"
            "  origin: {{uri: 's3://mnist/train', endpoint: '{2}'{3}}}\n"
            "  directory: {0}/node\n"
            "  stepAsideWindow: 0s\n"
            "  reservedFree: 0\n{4}",
            folder.path(),
            control.endpoint(),
            s3.endpoint(),
            source,
            more);
        sidecar =
            std::make_unique<SidecarProcess>(STOKER_SIDECAR_BINARY, path, folder.path() + "/log");
    }

    // Waits for a report of this dataset that meets `condition`; an earlier one suffices.
    template <class Condition>
    [[nodiscard]] bool reports(Condition condition) {
        return control.wait_report([&](const stoker::control::v1::Report& report) {
            return report.datasets_size() == 1 && condition(report.datasets(0));
        });
    }

    [[nodiscard]] SampleClient connect(std::uint64_t stream) const {
        SampleClient client{folder.path() + "/s.sock"};
        const auto welcome = client.hello("train", stream);
        EXPECT_TRUE(welcome.has_value()) << welcome.error().message;
        return client;
    }

    static std::vector<std::uint64_t> all() {
        std::vector<std::uint64_t> ids(kObjects);
        std::iota(ids.begin(), ids.end(), 0U);
        return ids;
    }

    static void expect_sample(SampleClient& client, std::uint64_t id) {
        const auto bytes = client.get(id);
        ASSERT_TRUE(bytes.has_value()) << "sample " << id << ": " << bytes.error().message;
        const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        ASSERT_EQ(text, bytes_of(id));
    }

    TempFolder folder;
    FakeS3 s3;
    stoker::testing::FakeOperator control;
    std::unique_ptr<SidecarProcess> sidecar;
};

}  // namespace stoker::test
