#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

// The metadata that every Kubernetes object has.
namespace stoker::control {

using TextMap = std::
    map<std::string, std::string>;  // labels, annotations, resources; ordered, so output is stable

// Names one object of a kind. `ns` is empty for cluster-scoped kinds.
struct ObjectKey {
    std::string ns;
    std::string name;

    auto operator<=>(const ObjectKey&) const = default;
};

// "namespace/name", or the name alone.
std::string to_string(const ObjectKey& key);

// A reference from a child to its owner; deleting the owner deletes the child.
struct OwnerReference {
    std::string api_version;
    std::string kind;
    std::string name;
    std::string uid;
    bool controller = true;
    // Foreground deletion of the owner waits for the child. Needs a right to the owner's
    // finalizers.
    bool blocks_deletion = true;

    bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
    std::string ns;
    std::string name;
    std::string uid;
    std::string resource_version;  // opaque; only compared for equality
    std::int64_t generation = 0;
    WallTime created_at{};
    std::optional<WallTime>
        deleting_since;  // set while the object waits for its children or finalizers
    TextMap labels;
    TextMap annotations;
    std::vector<OwnerReference> owners;

    [[nodiscard]] ObjectKey key() const { return {ns, name}; }

    // The owner with `controller: true`, or null. Valid while this object lives.
    [[nodiscard]] const OwnerReference* controller() const;

    bool operator==(const ObjectMeta&) const = default;
};

// The value of `key`, or an empty text.
const std::string& value_or_empty(const TextMap& map, const std::string& key);

}  // namespace stoker::control
