#include "operator/api/meta.h"

namespace stoker::control {

std::string to_string(const ObjectKey& key) {
    return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

const OwnerReference* ObjectMeta::controller() const {
    for (const OwnerReference& owner : owners) {
        if (owner.controller) {
            return &owner;
        }
    }
    return nullptr;
}

const std::string& value_or_empty(const TextMap& map, const std::string& key) {
    static const std::string kNothing;
    const auto found = map.find(key);
    return found == map.end() ? kNothing : found->second;
}

}  // namespace stoker::control
