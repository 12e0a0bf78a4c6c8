#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/base/result.h"

// What an inline volume asks of the driver. Everything in it but the pod's identity was written by
// whoever made the pod, so nothing in it gives a right. Pure.
namespace stoker::node {

inline constexpr const char* kDriverName = "csi.stoker.dev";

enum class View : std::uint8_t {
    kData,    // the samples, read-only
    kOwner,   // the whole node directory, for the sidecar that writes it
    kShared,  // the samples, read-only, for a namespace that the Dataset is shared with
    kGuest,   // that namespace's door to the leader, for its sidecars
};

// The pod that mounts the volume, in the kubelet's words.
struct PodIdentity {
    std::string ns;
    std::string name;
    std::string uid;

    bool operator==(const PodIdentity&) const = default;
};

// One node directory: <pool>/<namespace>/<uid>. Both names are safe as path components.
struct NodeDirectoryName {
    std::string ns;   // the Dataset's
    std::string uid;  // the Dataset's, or "inline-<digest>"

    auto operator<=>(const NodeDirectoryName&) const = default;
};

struct ViewRequest {
    View view = View::kData;
    std::string pool;  // the CachePool's name
    NodeDirectoryName directory;
    std::string dataset;  // the Dataset's name; empty for an inline dataset
    PodIdentity pod;

    [[nodiscard]] bool is_foreign() const { return pod.ns != directory.ns; }

    bool operator==(const ViewRequest&) const = default;
};

// A name that cannot leave its folder: 1 to 253 of a-z, 0-9, '-' and '.', and not "." or "..".
bool is_path_component(const std::string& name);

// The name of a Dataset's node directory: a UUID, or "inline-" and 16 hex digits.
bool is_dataset_uid(const std::string& name);

// `context` is NodePublishVolume's: attributes pool, namespace, uid, view and, for a Dataset,
// dataset; and the kubelet's own keys (podInfoOnMount). `read_only` is what the pod's volume says:
// runc 1.2 and later make a read-only bind mount writable again for a container that asks for it,
// unless the volume itself is read-only, so the read-only views demand it. kInvalidArgument: says
// what to write instead.
Result<ViewRequest> parse_view_request(
    const std::map<std::string, std::string>& context, bool read_only);

}  // namespace stoker::node
