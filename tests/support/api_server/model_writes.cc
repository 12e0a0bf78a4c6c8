// Server-side apply, deletion and garbage collection of the model.
#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/api/time_format.h"
#include "operator/kube/object.h"
#include "tests/support/api_server/model.h"

namespace stoker::test {

namespace {

using control::find_at;
using control::string_at;
using web::json::value;

// The fields of an applied body that its manager owns: all but those that identify the object.
value wanted_fields(const value& body, bool status_subresource, const std::string& subresource) {
    auto wanted = body;
    for (const char* identity : {"apiVersion", "kind"}) {
        if (wanted.has_field(identity)) {
            wanted.erase(identity);
        }
    }
    if (find_at(wanted, {"metadata"}) != nullptr) {
        for (const char* identity :
             {"name", "namespace", "uid", "resourceVersion", "managedFields"}) {
            if (find_at(wanted, {"metadata", identity}) != nullptr) {
                wanted.at("metadata").erase(identity);
            }
        }
        if (wanted.at("metadata").size() == 0) {
            wanted.erase("metadata");
        }
    }
    if (subresource == "status") {
        auto only_status = value::object();
        if (wanted.has_field("status")) {
            only_status["status"] = wanted.at("status");
        }
        return only_status;
    }
    if (status_subresource && wanted.has_field("status")) {
        wanted.erase("status");
    }
    return wanted;
}

ModelAnswer conflict_answer(const std::vector<std::pair<std::string, FieldPath>>& conflicts) {
    auto answer = status_answer(
        409, "Conflict", fmt::format("Apply failed with {} conflict(s)", conflicts.size()));
    auto status = Json::parse(answer.body)->value();
    for (std::size_t i = 0; i < conflicts.size(); ++i) {
        auto& cause = status["details"]["causes"][i];
        cause["reason"] = value("FieldManagerConflict");
        cause["message"] = value("conflict with " + conflicts[i].first);
        cause["field"] = value(to_text(conflicts[i].second));
    }
    answer.body = status.serialize();
    return answer;
}

bool is_owned_by_others(const FieldOwners& owners, const std::string& me, const FieldPath& path) {
    return std::any_of(owners.begin(), owners.end(), [&](const auto& owner) {
        return owner.first != me && owner.second.count(path) > 0;
    });
}

bool has_finalizers(const value& object) {
    const auto* finalizers = find_at(object, {"metadata", "finalizers"});
    return finalizers != nullptr && finalizers->size() > 0;
}

}  // namespace

ModelAnswer ApiServerModel::apply(Call& call) {
    const auto body = Json::parse(call.request->body);
    if (!body || !body->value().is_object()) {
        return status_answer(400, "BadRequest", "the body is not an object");
    }
    const value& wanted = body->value();
    if (find_at(wanted, {"metadata", "managedFields"}) != nullptr) {
        return status_answer(400, "BadRequest", "metadata.managedFields must be nil");
    }
    if (call.query["fieldManager"].empty()) {
        return status_answer(400, "BadRequest", "fieldManager is required for apply patch");
    }
    if (string_at(wanted, {"kind"}) != call.table->kind.kind ||
        string_at(wanted, {"metadata", "name"}) != call.key.name) {
        return status_answer(400, "BadRequest", "kind or metadata.name does not match the URL");
    }
    const auto found = call.table->entries.find(call.key);
    if (found != call.table->entries.end()) {
        return apply_to(call, found->second, wanted);
    }
    if (!call.subresource.empty()) {
        return status_answer(404, "NotFound", fmt::format("{:?} not found", call.key.name));
    }
    if (!string_at(wanted, {"metadata", "uid"}).empty() ||
        !string_at(wanted, {"metadata", "resourceVersion"}).empty()) {
        return status_answer(409, "Conflict", "uid mismatch: no existing object was found");
    }
    const std::string owner = call.query["fieldManager"] + "||Apply";
    auto answer = insert(call, wanted, owner);
    if (auto created = call.table->entries.find(call.key); created != call.table->entries.end()) {
        created->second.owners[owner] =
            leaf_paths(wanted_fields(wanted, call.table->status_subresource, ""));
    }
    return answer;
}

ModelAnswer ApiServerModel::apply_to(Call& call, Entry& entry, const value& wanted) {
    const std::string uid = string_at(wanted, {"metadata", "uid"});
    const std::string version = string_at(wanted, {"metadata", "resourceVersion"});
    const auto& before = entry.object.value();
    if ((!uid.empty() && uid != string_at(before, {"metadata", "uid"})) ||
        (!version.empty() && version != string_at(before, {"metadata", "resourceVersion"}))) {
        return status_answer(409, "Conflict", "the object has been modified");
    }
    const auto fields = wanted_fields(wanted, call.table->status_subresource, call.subresource);
    const std::string owner = call.query["fieldManager"] + "|" + call.subresource + "|Apply";
    const FieldSet now_wanted = leaf_paths(fields);
    std::vector<std::pair<std::string, FieldPath>> conflicts;
    for (const auto& [other, owned] : entry.owners) {
        for (const FieldPath& path : now_wanted) {
            const value* current = value_at(before, path);
            if (other != owner && owned.count(path) > 0 && current != nullptr &&
                *current != *value_at(fields, path)) {
                conflicts.emplace_back(other, path);
            }
        }
    }
    if (!conflicts.empty() && call.query["force"] != "true") {
        return conflict_answer(conflicts);
    }
    for (const auto& [other, path] : conflicts) {
        entry.owners[other].erase(path);
    }
    auto next = before;
    for (const FieldPath& path : entry.owners[owner]) {
        if (now_wanted.count(path) == 0 && !is_owned_by_others(entry.owners, owner, path)) {
            erase_at(next, path);
        }
    }
    merge_fields(next, fields);
    entry.owners[owner] = now_wanted;
    const Json stored = store(*call.table, call.key, entry, std::move(next));
    collect_garbage();
    return {200, stored.text(), std::nullopt};
}

ModelAnswer ApiServerModel::remove(Call& call) {
    const auto options = Json::parse(call.request->body.empty() ? "{}" : call.request->body);
    if (!options) {
        return status_answer(400, "BadRequest", "the body is not JSON");
    }
    Entry& entry = call.table->entries.at(call.key);
    const auto& object = entry.object.value();
    const std::string uid = string_at(options->value(), {"preconditions", "uid"});
    const std::string version = string_at(options->value(), {"preconditions", "resourceVersion"});
    if ((!uid.empty() && uid != string_at(object, {"metadata", "uid"})) ||
        (!version.empty() && version != string_at(object, {"metadata", "resourceVersion"}))) {
        return status_answer(409, "Conflict", "Precondition failed");
    }
    if (has_finalizers(object)) {
        mark_deleted(*call.table, call.key, entry);
        return {200, entry.object.text(), std::nullopt};
    }
    erase(*call.table, call.key);
    collect_garbage();
    return {200, R"({"kind":"Status","apiVersion":"v1","status":"Success"})", std::nullopt};
}

// Marks the object as being deleted; it disappears with its last finalizer.
void ApiServerModel::mark_deleted(Table& table, const ObjectKey& key, Entry& entry) {
    if (find_at(entry.object.value(), {"metadata", "deletionTimestamp"}) == nullptr) {
        auto next = entry.object.value();
        next["metadata"]["deletionTimestamp"] = value(control::format_time(now_));
        next["metadata"]["deletionGracePeriodSeconds"] = value(0);
        store(table, key, entry, std::move(next));
    }
}

// Deletes objects whose owners are all gone, as the garbage collector does later.
void ApiServerModel::collect_garbage() {
    while (something_went_) {
        something_went_ = false;
        for (auto& [name, table] : tables_) {
            for (auto at = table.entries.begin(); at != table.entries.end();) {
                auto& [key, entry] = *at++;
                const auto* owners = find_at(entry.object.value(), {"metadata", "ownerReferences"});
                if (owners == nullptr || !owners->is_array() || owners->size() == 0) {
                    continue;
                }
                const auto& list = owners->as_array();
                const bool orphan =
                    std::none_of(list.begin(), list.end(), [this](const value& owner) {
                        return uid_exists(string_at(owner, {"uid"}));
                    });
                if (orphan && has_finalizers(entry.object.value())) {
                    mark_deleted(table, key, entry);
                } else if (orphan) {
                    erase(table, ObjectKey(key));
                }
            }
        }
    }
}

bool ApiServerModel::uid_exists(const std::string& uid) const {
    for (const auto& [name, table] : tables_) {
        for (const auto& [key, entry] : table.entries) {
            if (string_at(entry.object.value(), {"metadata", "uid"}) == uid) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace stoker::test
