#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>

#include "node/mount/mounts.h"
#include "node/service/cluster_facts.h"

namespace stoker::node::test {

// The mount table as a map from target to source folder.
class FakeMounts final : public Mounts {
public:
    struct Entry {
        FileId id;
        Access access = Access::kReadOnly;
    };

    Status mount(int source, const std::string& target, Access access) override {
        if (failure) {
            return fail(*failure);
        }
        table.try_emplace(target, Entry{*file_id(source), access});
        return {};
    }

    // Any file that can be passed on serves as the descriptor.
    Result<std::optional<UniqueFd>> mount_files(const std::string& target) override {
        if (before_files) {
            before_files();
        }
        if (failure) {
            return fail(*failure);
        }
        const bool is_new = table.try_emplace(target, Entry{FileId{}, Access::kReadOnly}).second;
        return is_new ? std::optional{UniqueFd{::open("/dev/fuse", O_RDWR | O_CLOEXEC)}}
                      : std::nullopt;
    }

    Status unmount(const std::string& target) override {
        table.erase(target);
        return {};
    }

    Result<std::set<FileId>> mounted() override {
        std::set<FileId> result;
        for (const auto& [target, entry] : table) {
            result.insert(entry.id);
        }
        return result;
    }

    std::map<std::string, Entry> table;
    std::optional<Error> failure;
    std::function<void()> before_files;  // called by mount_files()
};

// Facts that a test sets.
class FakeFacts final : public ClusterFacts {
public:
    Result<std::string> pool_path(const std::string& pool) override {
        ++asked;
        const auto found = pools.find(pool);
        return found == pools.end()
                   ? Result<std::string>{fail(ErrorCode::kNotFound, "no such pool")}
                   : Result<std::string>{found->second};
    }

    Status check_shared(const ViewRequest& request) override {
        ++asked;
        return shared_with.contains(request.pod.ns)
                   ? Status{}
                   : Status{fail(ErrorCode::kForbidden, "not shared")};
    }

    bool is_uninstalled() override { return false; }

    std::map<std::string, std::string> pools = {{"nvme", "/mnt/nvme"}};
    std::set<std::string> shared_with;
    int asked = 0;
};

// The context that the kubelet passes for a pod of namespace `pod_ns` and a view of team/d1.
inline std::map<std::string, std::string> context(
    const std::string& view, const std::string& pod_ns = "team") {
    return {
        {"csi.storage.k8s.io/ephemeral", "true"},
        {"csi.storage.k8s.io/pod.namespace", pod_ns},
        {"csi.storage.k8s.io/pod.name", "resnet-0"},
        {"csi.storage.k8s.io/pod.uid", "pod-uid"},
        {"pool", "nvme"},
        {"namespace", "team"},
        {"uid", "d1"},
        {"dataset", "imagenet"},
        {"view", view}};
}

}  // namespace stoker::node::test
