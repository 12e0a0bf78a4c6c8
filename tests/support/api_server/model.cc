#include "tests/support/api_server/model.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/api/time_format.h"
#include "operator/kube/object.h"
#include "tests/support/api_server/json_patch.h"
#include "tests/support/api_server/target.h"

namespace stoker::test {

namespace {

using control::find_at;
using control::string_at;
using web::json::value;

std::string table_name(const std::string& group, const std::string& plural) {
    return group + "/" + plural;
}

ModelAnswer object_answer(int status, const Json& object) {
    return {status, object.text(), std::nullopt};
}

// Whether the name looks like a DNS label or subdomain; not a complete check.
bool is_name(const std::string& name) {
    return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    });
}

bool is_micro_time(const std::string& text) {
    const auto dot = text.find('.');
    return text.empty() ||
           (dot != std::string::npos && text.size() == dot + 8 && text.back() == 'Z');
}

}  // namespace

ModelAnswer status_answer(int code, const std::string& reason, const std::string& message) {
    auto status = value::object();
    status["kind"] = value("Status");
    status["apiVersion"] = value("v1");
    status["metadata"] = value::object();
    status["status"] = value("Failure");
    status["message"] = value(message);
    status["reason"] = value(reason);
    status["code"] = value(code);
    if (reason == "ResourceVersionTooLarge") {
        status["reason"] = value("Timeout");
        status["details"]["causes"][0]["reason"] = value(reason);
        status["details"]["retryAfterSeconds"] = value(1);
    }
    return {code, status.serialize(), std::nullopt};
}

ApiServerModel::ApiServerModel() {
    namespace kinds = control::kinds;
    for (const ResourceKind* kind :
         {&kinds::kPods,
          &kinds::kServices,
          &kinds::kNodes,
          &kinds::kNamespaces,
          &kinds::kJobs,
          &kinds::kTrainingJobs,
          &kinds::kDatasets,
          &kinds::kDatasetWarmups,
          &kinds::kCachePools,
          &kinds::kCacheQuotas}) {
        serve(*kind, true);
    }
    for (const ResourceKind* kind :
         {&kinds::kConfigMaps, &kinds::kSecrets, &kinds::kLeases, &kinds::kEvents}) {
        serve(*kind, false);
    }
}

void ApiServerModel::serve(const ResourceKind& kind, bool status_subresource) {
    Table& table = tables_[table_name(kind.group, kind.plural)];
    table.kind = kind;
    table.status_subresource = status_subresource;
    table.log.forget(version_);
}

void ApiServerModel::stop_serving(const ResourceKind& kind) {
    Table& table = tables_.at(table_name(kind.group, kind.plural));
    while (!table.entries.empty()) {
        erase(table, table.entries.begin()->first);
    }
    tables_.erase(table_name(kind.group, kind.plural));
}

ModelAnswer ApiServerModel::handle(const ModelRequest& request, WallTime now) {
    const Target target = parse_target(request.target);
    now_ = now;
    Call call;
    call.request = &request;
    call.query = target.query;
    call.key = {target.ns, target.name};
    call.subresource = target.subresource;
    call.now = now;
    if (target.plural == "tokenreviews") {
        return review_token(call);
    }
    if (target.plural == "subjectaccessreviews") {
        return review_access(call);
    }
    if (target.plural == "serviceaccounts" && target.subresource == "token") {
        return request_token(call);
    }
    if (target.plural.empty()) {
        return discover(target.path);
    }
    const auto table = tables_.find(table_name(target.group, target.plural));
    if (table == tables_.end() || table->second.kind.version != target.version) {
        return status_answer(404, "NotFound", "the server could not find the requested resource");
    }
    call.table = &table->second;
    return dispatch(call);
}

ModelAnswer ApiServerModel::dispatch(Call& call) {
    const std::string& method = call.request->method;
    if (method == "POST" && call.key.name.empty()) {
        return create(call);
    }
    if (method == "GET" && call.key.name.empty()) {
        const bool watches = call.query["watch"] == "1" || call.query["watch"] == "true";
        return watches ? watch(call) : list(call);
    }
    if (method == "PATCH" && call.request->content_type == "application/apply-patch+yaml") {
        return apply(call);
    }
    const auto found = call.table->entries.find(call.key);
    if (found == call.table->entries.end()) {
        return status_answer(
            404,
            "NotFound",
            fmt::format("{} {:?} not found", call.table->kind.plural, call.key.name));
    }
    if (method == "GET") {
        return object_answer(200, found->second.object);
    }
    if (method == "PUT") {
        return replace(call);
    }
    if (method == "PATCH") {
        return patch(call);
    }
    return method == "DELETE" ? remove(call)
                              : status_answer(405, "MethodNotAllowed", "not allowed here");
}

ModelAnswer ApiServerModel::create(Call& call) {
    auto body = Json::parse(call.request->body);
    if (!body || !body->value().is_object()) {
        return status_answer(400, "BadRequest", "the body is not an object");
    }
    auto object = body->value();
    std::string name = string_at(object, {"metadata", "name"});
    if (const auto prefix = string_at(object, {"metadata", "generateName"});
        name.empty() && !prefix.empty()) {
        name = fmt::format("{}{:05x}", prefix, version_);
        object["metadata"]["name"] = value(name);
    }
    if (string_at(object, {"kind"}) != call.table->kind.kind) {
        return status_answer(400, "BadRequest", "the body is of another kind");
    }
    if (!is_name(name)) {
        return status_answer(
            422, "Invalid", fmt::format("metadata.name: Invalid value: {:?}", name));
    }
    if (!string_at(object, {"metadata", "resourceVersion"}).empty()) {
        return status_answer(
            400, "BadRequest", "resourceVersion should not be set on objects to be created");
    }
    call.key.name = name;
    if (call.table->entries.count(call.key) > 0) {
        return status_answer(
            409,
            "AlreadyExists",
            fmt::format("{} {:?} already exists", call.table->kind.plural, name));
    }
    return insert(call, std::move(object), manager_of(call) + "||Update");
}

ModelAnswer ApiServerModel::insert(Call& call, value object, const std::string& owner) {
    const ResourceKind& kind = call.table->kind;
    if (kind.plural == "leases" && (!is_micro_time(string_at(object, {"spec", "renewTime"})) ||
                                    !is_micro_time(string_at(object, {"spec", "acquireTime"})))) {
        return status_answer(400, "BadRequest", "parsing time: not a MicroTime");
    }
    if (call.table->status_subresource && object.has_field("status")) {
        object.erase("status");
    }
    object["apiVersion"] = value(kind.api_version());
    auto& metadata = object["metadata"];
    if (kind.namespaced) {
        metadata["namespace"] = value(call.key.ns);
    }
    metadata["uid"] = value(fmt::format("uid-{}", ++uids_));
    metadata["creationTimestamp"] = value(control::format_time(call.now));
    metadata["generation"] = value(1);
    Entry& entry = call.table->entries[call.key];
    entry.owners[owner] = leaf_paths(object);
    const Json created = store(*call.table, call.key, entry, std::move(object));
    something_went_ =
        something_went_ || created.value().at("metadata").has_field("ownerReferences");
    collect_garbage();
    return object_answer(201, created);
}

ModelAnswer ApiServerModel::replace(Call& call) {
    auto body = Json::parse(call.request->body);
    if (!body || !body->value().is_object()) {
        return status_answer(400, "BadRequest", "the body is not an object");
    }
    return update(
        call, call.table->entries.at(call.key), body->value(), manager_of(call) + "||Update");
}

ModelAnswer ApiServerModel::patch(Call& call) {
    auto body = Json::parse(call.request->body);
    if (!body) {
        return status_answer(400, "BadRequest", "the body is not JSON");
    }
    Entry& entry = call.table->entries.at(call.key);
    auto next = entry.object.value();
    if (call.request->content_type == "application/merge-patch+json") {
        // A version in the patch is a precondition; without one the patch applies to the newest object.
        merge_patch(next, body->value());
    } else if (call.request->content_type == "application/json-patch+json") {
        if (const auto done = json_patch(next, body->value()); !done) {
            return status_answer(422, "Invalid", "the patch does not fit: " + done.error().message);
        }
    } else {
        return status_answer(415, "UnsupportedMediaType", "this patch is not supported");
    }
    return update(call, entry, std::move(next), manager_of(call) + "||Update");
}

// The common steps of PUT and PATCH: preconditions, immutable fields, and fields of the
// subresource.
ModelAnswer ApiServerModel::update(Call& call, Entry& entry, value next, const std::string& owner) {
    const auto& before = entry.object.value();
    const std::string version = string_at(next, {"metadata", "resourceVersion"});
    const std::string uid = string_at(next, {"metadata", "uid"});
    if ((!version.empty() && version != string_at(before, {"metadata", "resourceVersion"})) ||
        (!uid.empty() && uid != string_at(before, {"metadata", "uid"}))) {
        return status_answer(
            409,
            "Conflict",
            "the object has been modified; please apply your changes to the latest version");
    }
    if (call.table->kind.plural == "leases" &&
        (!is_micro_time(string_at(next, {"spec", "renewTime"})) ||
         !is_micro_time(string_at(next, {"spec", "acquireTime"})))) {
        return status_answer(400, "BadRequest", "parsing time: not a MicroTime");
    }
    value after = next;
    if (call.subresource == "status") {
        after = before;
        after["status"] = next.has_field("status") ? next.at("status") : value::object();
    } else if (call.table->status_subresource) {
        if (before.has_field("status")) {
            after["status"] = before.at("status");
        } else if (after.has_field("status")) {
            after.erase("status");
        }
    }
    auto& metadata = after["metadata"];
    for (const char* fixed :
         {"uid",
          "name",
          "namespace",
          "creationTimestamp",
          "generation",
          "resourceVersion",
          "deletionTimestamp"}) {
        if (const auto* old = find_at(before, {"metadata", fixed})) {
            metadata[fixed] = *old;
        } else if (metadata.has_field(fixed)) {
            metadata.erase(fixed);
        }
    }
    for (const FieldPath& path : changed_paths(before, after)) {
        for (auto& [name, fields] : entry.owners) {
            fields.erase(path);
        }
        entry.owners[owner].insert(path);
    }
    const Json stored = store(*call.table, call.key, entry, std::move(after));
    collect_garbage();
    return object_answer(200, stored);
}

// Stores the object's next version and notifies watches, unless nothing changed. Removes the object
// if it is being deleted and has no finalizer any more.
Json ApiServerModel::store(Table& table, const ObjectKey& key, Entry& entry, value next) {
    const bool existed = entry.object.value().is_object();
    if (existed && next == entry.object.value()) {
        return entry.object;
    }
    if (existed && next.has_field("spec") && entry.object.value().has_field("spec") &&
        next.at("spec") != entry.object.value().at("spec")) {
        const auto generation = control::integer_at(next, {"metadata", "generation"});
        next["metadata"]["generation"] = value(generation.value_or(0) + 1);
    }
    ++writes_;
    next["metadata"]["resourceVersion"] = value(fmt::format("{}", ++version_));
    const auto* finalizers = find_at(next, {"metadata", "finalizers"});
    const bool held = finalizers != nullptr && finalizers->size() > 0;
    const bool goes = find_at(next, {"metadata", "deletionTimestamp"}) != nullptr && !held;
    const Json stored(std::move(next));
    if (goes) {
        something_went_ = true;
        table.log.add({version_, key, stored, std::nullopt});
        table.entries.erase(key);
        return stored;
    }
    LoggedChange change{version_, key, std::nullopt, stored};
    if (existed) {
        change.before = entry.object;
    }
    table.log.add(std::move(change));
    entry.object = stored;
    return stored;
}

void ApiServerModel::erase(Table& table, const ObjectKey& key) {
    const auto found = table.entries.find(key);
    ++version_;
    ++writes_;
    something_went_ = true;
    table.log.add({version_, key, found->second.object, std::nullopt});
    table.entries.erase(found);
}

std::string ApiServerModel::manager_of(const Call& call) const {
    const auto named = call.query.find("fieldManager");
    return named == call.query.end() ? call.request->manager : named->second;
}

void ApiServerModel::set_event_capacity(const ResourceKind& kind, std::size_t capacity) {
    tables_.at(table_name(kind.group, kind.plural)).log.set_capacity(capacity);
}

void ApiServerModel::compact(const ResourceKind& kind) {
    ++version_;
    tables_.at(table_name(kind.group, kind.plural)).log.forget(version_);
}

void ApiServerModel::add_token(
    const std::string& token, const Json& user, std::vector<std::string> audiences) {
    tokens_[token] = TokenOwner{user, std::move(audiences)};
}

std::optional<Json> ApiServerModel::find(const ResourceKind& kind, const ObjectKey& key) const {
    const auto table = tables_.find(table_name(kind.group, kind.plural));
    if (table == tables_.end()) {
        return std::nullopt;
    }
    const auto found = table->second.entries.find(key);
    return found == table->second.entries.end() ? std::nullopt
                                                : std::optional(found->second.object);
}

std::map<ObjectKey, Json> ApiServerModel::all(const ResourceKind& kind) const {
    std::map<ObjectKey, Json> objects;
    const auto table = tables_.find(table_name(kind.group, kind.plural));
    if (table != tables_.end()) {
        for (const auto& [key, entry] : table->second.entries) {
            objects.emplace(key, entry.object);
        }
    }
    return objects;
}

}  // namespace stoker::test
