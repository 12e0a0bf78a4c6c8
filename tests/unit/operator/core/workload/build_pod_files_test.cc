#include <algorithm>

#include <gtest/gtest.h>

#include "operator/core/workload/build_pod.h"
#include "tests/unit/operator/core/make_training_job.h"

namespace stoker::control {
namespace {

// A job that reads dataset train of the team's own bucket as files.
TrainingJobView make_files_view() {
    TrainingJobView view = make_view();
    ResolvedDataset& dataset = view.datasets.datasets[0];
    dataset.access = DatasetAccess::kFiles;
    dataset.mount_path = "/data/train";
    dataset.source = {"s3://imagenet/train", "http://s3:9000", "eu-west-1", {}, "keys", {}};
    return view;
}

PodManifest pod_of(const TrainingJobView& view) {
    return build_pod({view.job, view.datasets.datasets, view.pool, view.settings, 1, {}, {}});
}

bool has_variable(const ContainerManifest& container, const std::string& name) {
    return std::ranges::count(container.env, name, &EnvVar::name) > 0;
}

// The attribute "view" of the CSI volume that the container mounts at the path; "" if none.
std::string view_at(
    const PodManifest& pod, const ContainerManifest& container, const std::string& path) {
    const auto mount = std::ranges::find(container.mounts, path, &MountManifest::path);
    if (mount == container.mounts.end()) {
        return "";
    }
    const auto volume = std::ranges::find(pod.volumes, mount->volume, &VolumeManifest::name);
    return std::get<CsiVolume>(volume->source).attributes.at("view");
}

TEST(BuildPodFiles, AddsOneRestrictedContainerAfterTheSidecar) {
    TrainingJobView view = make_files_view();
    view.settings.files_resources = {{{"memory", "512Mi"}}, {{"cpu", "50m"}}};
    const PodManifest pod = pod_of(view);
    ASSERT_EQ(pod.init_containers.size(), 2U);
    const ContainerManifest& files = pod.init_containers[1];
    EXPECT_EQ(files.name, "stoker-files");
    EXPECT_EQ(files.image, pod.init_containers[0].image);
    EXPECT_EQ(files.command, std::vector<std::string>{"stoker-files"});
    EXPECT_EQ(files.resources, view.settings.files_resources);
    EXPECT_TRUE(files.restricted);
    EXPECT_TRUE(files.always_running);
}

TEST(BuildPodFiles, OnlyTheServerMountsItsSocket) {
    const PodManifest pod = pod_of(make_files_view());
    const ContainerManifest& files = pod.init_containers.at(1);
    EXPECT_EQ(view_at(pod, files, "/stoker/files/train"), "files-server");
    EXPECT_EQ(view_at(pod, pod.trainer, "/data/train"), "files");
    for (const ContainerManifest* other : {&pod.trainer, &pod.init_containers[0]}) {
        for (const MountManifest& mount : other->mounts) {
            EXPECT_FALSE(mount.volume.starts_with("stoker-files-server")) << other->name;
        }
    }
    for (const VolumeManifest& volume : pod.volumes) {
        const auto* csi = std::get_if<CsiVolume>(&volume.source);
        if (csi != nullptr && csi->attributes.at("view").starts_with("files")) {
            EXPECT_TRUE(csi->read_only) << volume.name;
        }
    }
}

TEST(BuildPodFiles, TrainerOfFilesAloneHasNoKey) {
    TrainingJobView view = make_files_view();
    EXPECT_FALSE(has_variable(pod_of(view).trainer, "AWS_SECRET_ACCESS_KEY"));
    view.datasets.datasets.push_back(view.datasets.datasets[0]);
    view.datasets.datasets[1].name = "val";
    view.datasets.datasets[1].access = DatasetAccess::kSdk;
    EXPECT_TRUE(has_variable(pod_of(view).trainer, "AWS_SECRET_ACCESS_KEY"));
}

}  // namespace
}  // namespace stoker::control
