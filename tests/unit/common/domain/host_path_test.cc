#include "common/domain/host_path.h"

#include <gtest/gtest.h>

namespace stoker::domain {
namespace {

TEST(HostPath, RejectsSystemTreesAndPathsBelow) {
    for (const char* path :
         {"/etc",
          "/etc/ssl",
          "/usr/local",
          "/var/lib/kubelet",
          "/var/lib/kubelet/pods/x",
          "/run/x",
          "/proc/1",
          "/root",
          "/var/log/pods",
          "/boot",
          "/var/lib/containerd/io"}) {
        EXPECT_TRUE(is_system_path(path)) << path;
    }
}

TEST(HostPath, RejectsParentFoldersAndInvalidPaths) {
    for (const char* path : {"/", "", "mnt", "/var", "/var/lib", "/mnt", "/tmp", "/home"}) {
        EXPECT_TRUE(is_system_path(path)) << path;
    }
}

TEST(HostPath, AcceptsDiskAndDataDirectories) {
    for (const char* path :
         {"/mnt/nvme",
          "/mnt/nvme/stoker",
          "/var/lib/stoker",
          "/data",
          "/srv/cache",
          "/etcetera",
          "/var/lib/kubelet-cache",
          "/home/stoker"}) {
        EXPECT_FALSE(is_system_path(path)) << path;
    }
}

}  // namespace
}  // namespace stoker::domain
