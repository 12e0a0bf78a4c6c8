#include "operator/core/spec/validate_host_paths.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

bool is_refused(const std::string& path, const std::string& pool = "/mnt/nvme/stoker") {
    PodOverlay pod;
    pod.host_paths = {{"data", path}};
    const std::vector<FieldError> errors = validate_host_paths(pod, {}, {pool});
    EXPECT_TRUE(errors.empty() || errors[0].path.find("volumes[data]") != std::string::npos);
    return !errors.empty();
}

TEST(ValidateHostPaths, RefusesThePoolItsChildrenAndItsParents) {
    for (const char* path :
         {"/mnt/nvme/stoker",
          "/mnt/nvme/stoker/",
          "/mnt//nvme/./stoker/team/uid",
          "/mnt/nvme",
          "/mnt",
          "/",
          "//"}) {
        EXPECT_TRUE(is_refused(path)) << path;
    }
}

TEST(ValidateHostPaths, AcceptsPathsBesideThePool) {
    for (const char* path : {"/mnt/nvme/stoker2", "/mnt/nvme/data", "/var/lib/data", "/dev/shm"}) {
        EXPECT_FALSE(is_refused(path)) << path;
    }
    EXPECT_FALSE(is_refused("/data", "")) << "a pool without a path";
}

TEST(ValidateHostPaths, RefusesADatasetInThePool) {
    ResolvedDataset dataset;
    dataset.name = "train";
    dataset.source.volume = SourceVolume{std::nullopt, "/mnt/nvme/stoker/other"};
    const std::vector<FieldError> errors =
        validate_host_paths({}, {dataset}, {"/srv", "/mnt/nvme/stoker"});
    ASSERT_EQ(errors.size(), 1U);
    EXPECT_EQ(errors[0].path, "spec.datasets[train]");
}

}  // namespace
}  // namespace stoker::control
