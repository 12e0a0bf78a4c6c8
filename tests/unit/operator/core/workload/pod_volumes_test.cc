#include "operator/core/workload/pod_volumes.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

std::set<std::string> volume_names(const JobInput& input) {
    std::set<std::string> names;
    for (const VolumeManifest& volume : build_volumes(input)) {
        EXPECT_TRUE(names.insert(volume.name).second) << volume.name << " is a duplicate";
        EXPECT_LE(volume.name.size(), 63U);
    }
    return names;
}

// Volumes of a container's mounts, each of which has a path of its own.
std::set<std::string> mounted_by(const std::vector<MountManifest>& mounts) {
    std::set<std::string> paths;
    std::set<std::string> volumes;
    for (const MountManifest& mount : mounts) {
        EXPECT_TRUE(paths.insert(mount.path).second) << mount.path << " is mounted twice";
        volumes.insert(mount.volume);
    }
    return volumes;
}

TEST(PodVolumes, AreThoseThatContainersMount) {
    TrainingJob job = make_training_job();
    job.spec.pod_template.automount_service_account_token = true;
    TrainingJobView view = make_view(job);
    std::vector<ResolvedDataset>& datasets = view.datasets.datasets;
    datasets[0].source.secret_ref = "keys";
    datasets.push_back(datasets[0]);
    datasets[1].name = std::string(63, 'x');
    datasets[1].source = {"file:///d", "", "", {}, {}, SourceVolume{"claim", {}}};
    datasets.push_back(datasets[0]);
    datasets[2].name = "shared";
    datasets[2].ns = "data";
    const JobInput input{view.job, datasets, view.pool, view.settings, 1, {}, {}};
    const std::set<std::string> names = volume_names(input);
    std::set<std::string> mounted = mounted_by(sidecar_mounts(input));
    mounted.merge(mounted_by(trainer_mounts(input)));
    EXPECT_EQ(mounted, names);
    for (const std::string& name : mounted_by(s3_mounts(input))) {
        EXPECT_TRUE(names.contains(name)) << name;
    }
}

TEST(PodVolumes, WithoutACacheAreTheTrainersOnly) {
    TrainingJobView view = make_view();
    const ResolvedPool none;
    const JobInput input{view.job, view.datasets.datasets, none, view.settings, 1, {}, {}};
    EXPECT_FALSE(has_cache(input));
    EXPECT_EQ(volume_names(input), mounted_by(trainer_mounts(input)));
}

}  // namespace
}  // namespace stoker::control
