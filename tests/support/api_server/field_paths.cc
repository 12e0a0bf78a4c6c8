#include "tests/support/api_server/field_paths.h"

#include <algorithm>

#include <cpprest/json.h>

namespace stoker::test {

namespace {

using web::json::value;

// The key field of items in the list named `list`; "" for a set of strings; nullptr for an atomic
// list.
const char* key_of_list(const std::string& list) {
    static const std::map<std::string, const char*> kKeys = {
        {"conditions", "type"},
        {"containers", "name"},
        {"initContainers", "name"},
        {"volumes", "name"},
        {"env", "name"},
        {"volumeMounts", "mountPath"},
        {"ownerReferences", "uid"},
        {"finalizers", ""},
    };
    const auto found = kKeys.find(list);
    return found == kKeys.end() ? nullptr : found->second;
}

// The path step of `item`, or "" if the item lacks the key field (its list then counts as atomic).
std::string step_of(const char* key, const value& item) {
    if (*key == '\0') {
        return item.is_string() ? "[=" + item.as_string() + "]" : "";
    }
    const std::string name = control::string_at(item, {key});
    return name.empty() ? "" : std::string("[") + key + "=" + name + "]";
}

bool is_keyed(const std::string& name, const value& list) {
    const char* key = key_of_list(name);
    if (key == nullptr || !list.is_array()) {
        return false;
    }
    const auto& items = list.as_array();
    return std::all_of(items.begin(), items.end(), [key](const value& item) {
        return !step_of(key, item).empty();
    });
}

void collect(const std::string& name, const value& node, FieldPath& path, FieldSet& out) {
    if (node.is_object() && node.size() > 0) {
        for (const auto& [field, child] : node.as_object()) {
            path.push_back(field);
            collect(field, child, path, out);
            path.pop_back();
        }
    } else if (is_keyed(name, node)) {
        for (const auto& item : node.as_array()) {
            path.push_back(step_of(key_of_list(name), item));
            collect("", item, path, out);
            path.pop_back();
        }
    } else {
        out.insert(path);
    }
}

// Index of the item that `step` names in `list`; the list's size if there is none.
std::size_t find_item(const value& list, const std::string& name, const std::string& step) {
    const char* key = key_of_list(name);
    std::size_t index = 0;
    while (index < list.size() && step_of(key, list.at(index)) != step) {
        ++index;
    }
    return index;
}

const value* child_of(const value& node, const std::string& name, const std::string& step) {
    if (node.is_object()) {
        return control::find_at(node, {step});
    }
    if (!is_keyed(name, node)) {
        return nullptr;
    }
    const std::size_t index = find_item(node, name, step);
    return index < node.size() ? &node.at(index) : nullptr;
}

void merge_into(const std::string& name, value& target, const value& patch) {
    if (patch.is_object() && patch.size() > 0) {
        if (!target.is_object()) {
            target = value::object();
        }
        for (const auto& [field, child] : patch.as_object()) {
            merge_into(field, target[field], child);
        }
    } else if (is_keyed(name, patch)) {
        if (!is_keyed(name, target)) {
            target = value::array();
        }
        for (const auto& item : patch.as_array()) {
            const std::size_t index = find_item(target, name, step_of(key_of_list(name), item));
            merge_into("", target[index], item);
        }
    } else {
        target = patch;
    }
}

}  // namespace

FieldSet leaf_paths(const value& document) {
    FieldSet out;
    FieldPath path;
    collect("", document, path, out);
    out.erase(FieldPath{});
    return out;
}

const value* value_at(const value& document, const FieldPath& path) {
    const value* at = &document;
    std::string name;
    for (const std::string& step : path) {
        at = child_of(*at, name, step);
        if (at == nullptr) {
            return nullptr;
        }
        name = step;
    }
    return at;
}

void erase_at(value& document, const FieldPath& path) {
    value* at = &document;
    std::string name;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
        at = const_cast<value*>(child_of(*at, name, path[i]));
        if (at == nullptr) {
            return;
        }
        name = path[i];
    }
    if (at->is_object()) {
        if (control::find_at(*at, {path.back()}) != nullptr) {
            at->erase(path.back());
        }
    } else if (is_keyed(name, *at)) {
        if (const std::size_t index = find_item(*at, name, path.back()); index < at->size()) {
            at->erase(index);
        }
    }
}

void merge_fields(value& document, const value& patch) {
    merge_into("", document, patch);
}

FieldSet changed_paths(const value& before, const value& after) {
    FieldSet changed;
    for (const FieldPath& path : leaf_paths(after)) {
        const value* old = value_at(before, path);
        if (old == nullptr || *old != *value_at(after, path)) {
            changed.insert(path);
        }
    }
    return changed;
}

std::string to_text(const FieldPath& path) {
    std::string text;
    for (const std::string& step : path) {
        text += (step.starts_with('[') ? "" : ".") + step;
    }
    return text;
}

}  // namespace stoker::test
