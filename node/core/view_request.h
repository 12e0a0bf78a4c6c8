#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/result.h"

// The request in a pod's inline volume. The pod's author controls everything in it except the pod's
// identity, so nothing in it grants a right. Pure.
namespace stoker::node {

inline constexpr const char* kDriverName = "csi.stoker.dev";

enum class View : std::uint8_t {
    kData,         // the samples, read-only
    kOwner,        // the whole node directory, for the sidecar that writes it
    kShared,       // the samples, read-only, for a namespace that the Dataset is shared with
    kGuest,        // that namespace's socket to the leader, for its sidecars
    kFiles,        // the samples as files, which the pod's stoker-files serves
    kFilesServer,  // the socket by which stoker-files gets the files' mount
};

// The pod that mounts the volume, as the kubelet reports it.
struct PodIdentity {
    std::string ns;
    std::string name;
    std::string uid;

    bool operator==(const PodIdentity&) const = default;
};

// One node directory: <pool>/<namespace>/<uid>. Namespace and uid are safe as path components.
struct NodeDirectoryName {
    std::string ns;   // namespace of the Dataset
    std::string uid;  // uid of the Dataset, or "inline-<digest>"

    auto operator<=>(const NodeDirectoryName&) const = default;
};

struct ViewRequest {
    View view = View::kData;
    std::string pool;  // the CachePool's name
    NodeDirectoryName directory;
    std::string dataset;  // the Dataset's name; empty for an inline dataset
    PodIdentity pod;

    // Whether the view shows something of the pod's own stoker-files, not of the node directory.
    [[nodiscard]] bool is_of_files() const {
        return view == View::kFiles || view == View::kFilesServer;
    }

    [[nodiscard]] bool is_foreign() const { return pod.ns != directory.ns; }

    bool operator==(const ViewRequest&) const = default;
};

// A name that is safe as a path component: 1 to 253 of a-z, 0-9, '-' and '.', and not "." or "..".
bool is_path_component(const std::string& name);

// The name of a Dataset's node directory: a UUID, or "inline-" and 16 hex digits.
bool is_dataset_uid(const std::string& name);

// Parses a volume. `context` comes from NodePublishVolume: attributes pool, namespace, uid, view
// and, for a Dataset, dataset; and the kubelet's own keys (podInfoOnMount). `read_only` is the
// volume's field in the pod. Read-only views require it, because runc 1.2 and later let a container
// remount a read-only bind mount writable unless the volume itself is read-only. kInvalidArgument:
// the message tells how to fix the volume.
Result<ViewRequest> parse_view_request(
    const std::map<std::string, std::string>& context, bool read_only);

}  // namespace stoker::node
