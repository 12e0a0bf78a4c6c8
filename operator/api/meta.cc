#include "operator/api/meta.h"

#include "operator/api/field_codec.h"

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

template <>
Result<ObjectMeta> read_document(const Json& json) {
    ObjectMeta result;
    STOKER_TRY_VOID(read_json(json, [&](const JsonReader& root) {
        FieldReader::read_into(root.object("metadata"), result);
    }));
    return result;
}

}  // namespace stoker::control
