// Lists, watches, discovery and token reviews of the model.
#include <algorithm>
#include <charconv>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/kube/object.h"
#include "tests/support/api_server/model.h"

namespace stoker::test {

namespace {

using control::find_at;
using control::string_at;
using web::json::value;

std::uint64_t number_of(const std::string& text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string get(const std::map<std::string, std::string>& query, const std::string& name) {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
}

ModelAnswer too_large(std::uint64_t asked, std::uint64_t current) {
    return status_answer(
        504,
        "ResourceVersionTooLarge",
        fmt::format("Too large resource version: {}, current: {}", asked, current));
}

ModelAnswer expired() {
    return status_answer(410, "Expired", "the provided continue parameter or version is too old");
}

// "<version>:<key of the last object sent>"
struct ContinueToken {
    std::uint64_t version = 0;
    std::string after;
};

ContinueToken parse_token(const std::string& text) {
    const auto colon = std::min(text.find(':'), text.size());
    return {number_of(text.substr(0, colon)), text.substr(std::min(colon + 1, text.size()))};
}

value list_document(const ResourceKind& kind, std::uint64_t version) {
    auto list = value::object();
    list["kind"] = value(kind.kind + "List");
    list["apiVersion"] = value(kind.api_version());
    list["metadata"]["resourceVersion"] = value(fmt::format("{}", version));
    list["items"] = value::array();
    return list;
}

}  // namespace

ModelAnswer ApiServerModel::list(const Call& call) {
    const Table& table = *call.table;
    const std::string token = get(call.query, "continue");
    const std::string asked = get(call.query, "resourceVersion");
    if (!token.empty() && !asked.empty()) {
        return status_answer(
            400, "BadRequest", "specifying resource version is not allowed when using continue");
    }
    if (number_of(asked) > version_) {
        return too_large(number_of(asked), version_);
    }
    ContinueToken from{version_, ""};
    std::map<ObjectKey, Json> objects;
    for (const auto& [key, entry] : table.entries) {
        objects.emplace(key, entry.object);
    }
    if (!token.empty()) {
        from = parse_token(token);
        if (from.version < table.log.floor()) {
            return expired();
        }
        table.log.rewind(objects, from.version);
    }
    const Selector selector{
        call.key.ns, get(call.query, "labelSelector"), get(call.query, "fieldSelector")};
    const std::uint64_t limit = number_of(get(call.query, "limit"));
    auto list = list_document(table.kind, from.version);
    std::size_t count = 0;
    std::string last;
    for (const auto& [key, object] : objects) {
        const std::string name = control::to_string(key);
        if (name <= from.after || !matches(selector, object.value())) {
            continue;
        }
        if (limit != 0 && count == limit) {
            list["metadata"]["continue"] = value(fmt::format("{}:{}", from.version, last));
            break;
        }
        list["items"][count++] = object.value();
        last = name;
    }
    return {200, list.serialize(), std::nullopt};
}

ModelAnswer ApiServerModel::watch(const Call& call) {
    const std::string asked = get(call.query, "resourceVersion");
    if (number_of(asked) > version_) {
        return too_large(number_of(asked), version_);
    }
    WatchCursor cursor;
    cursor.resource = call.table->kind.group + "/" + call.table->kind.plural;
    cursor.api_version = call.table->kind.api_version();
    cursor.kind = call.table->kind.kind;
    cursor.selector = {
        call.key.ns, get(call.query, "labelSelector"), get(call.query, "fieldSelector")};
    cursor.after = number_of(asked);
    cursor.send_state = cursor.after == 0;
    cursor.bookmarks = get(call.query, "allowWatchBookmarks") == "true";
    cursor.timeout_seconds =
        static_cast<std::int64_t>(number_of(get(call.query, "timeoutSeconds")));
    return {200, "", std::move(cursor)};
}

WatchBatch ApiServerModel::poll(WatchCursor& cursor) const {
    WatchBatch batch;
    const auto table = tables_.find(cursor.resource);
    if (table == tables_.end()) {
        batch.ended = true;
        return batch;
    }
    if (cursor.send_state) {
        for (const auto& [key, entry] : table->second.entries) {
            if (matches(cursor.selector, entry.object.value())) {
                batch.lines.push_back(event_line("ADDED", entry.object));
            }
        }
        cursor.send_state = false;
    } else if (cursor.after < table->second.log.floor()) {
        const auto answer = status_answer(
            410, "Expired", fmt::format("too old resource version: {}", cursor.after));
        batch.lines.push_back(event_line("ERROR", Json::parse(answer.body).value()));
        batch.ended = true;
        return batch;
    } else {
        batch.lines = table->second.log.lines_after(cursor.after, cursor.selector);
    }
    cursor.after = version_;
    return batch;
}

std::string ApiServerModel::bookmark(const WatchCursor& cursor) const {
    auto object = value::object();
    object["kind"] = value(cursor.kind);
    object["apiVersion"] = value(cursor.api_version);
    object["metadata"]["resourceVersion"] = value(fmt::format("{}", cursor.after));
    object["metadata"]["creationTimestamp"] = value::null();
    return event_line("BOOKMARK", Json(std::move(object)));
}

ModelAnswer ApiServerModel::discover(const std::string& path) const {
    auto answer = value::object();
    if (path == "/version") {
        answer["major"] = value("1");
        answer["minor"] = value("34");
        answer["gitVersion"] = value("v1.34.0-fake");
        return {200, answer.serialize(), std::nullopt};
    }
    answer["kind"] = value("APIGroup");
    for (const auto& [name, table] : tables_) {
        if (path == "/apis/" + table.kind.group) {
            answer["name"] = value(table.kind.group);
            answer["preferredVersion"]["version"] = value(table.kind.version);
            return {200, answer.serialize(), std::nullopt};
        }
    }
    return status_answer(404, "NotFound", "the server could not find the requested resource");
}

ModelAnswer ApiServerModel::review_token(const Call& call) const {
    auto review = Json::parse(call.request->body);
    if (!review || call.request->method != "POST") {
        return status_answer(400, "BadRequest", "not a TokenReview");
    }
    auto answer = review->value();
    auto& status = answer["status"] = value::object();
    status["authenticated"] = value::boolean(false);
    const auto owner = tokens_.find(string_at(answer, {"spec", "token"}));
    const auto* asked = find_at(answer, {"spec", "audiences"});
    if (owner != tokens_.end() && asked != nullptr && asked->is_array()) {
        std::size_t shared = 0;
        for (const auto& audience : asked->as_array()) {
            const auto& granted = owner->second.audiences;
            if (std::find(granted.begin(), granted.end(), audience.as_string()) != granted.end()) {
                status["audiences"][shared++] = audience;
            }
        }
        if (shared > 0) {
            status["authenticated"] = value::boolean(true);
            status["user"] = owner->second.user.value();
        }
    }
    if (!status.at("authenticated").as_bool()) {
        status["error"] = value("invalid bearer token");
    }
    return {201, answer.serialize(), std::nullopt};
}

void ApiServerModel::allow(
    const std::string& user, const std::string& verb, const std::string& path) {
    allowed_.insert(fmt::format("{} {} {}", user, verb, path));
}

ModelAnswer ApiServerModel::review_access(const Call& call) const {
    auto review = Json::parse(call.request->body);
    if (!review || call.request->method != "POST") {
        return status_answer(400, "BadRequest", "not a SubjectAccessReview");
    }
    auto answer = review->value();
    const std::string asked = fmt::format(
        "{} {} {}",
        string_at(answer, {"spec", "user"}),
        string_at(answer, {"spec", "nonResourceAttributes", "verb"}),
        string_at(answer, {"spec", "nonResourceAttributes", "path"}));
    answer["status"]["allowed"] = value::boolean(allowed_.contains(asked));
    return {201, answer.serialize(), std::nullopt};
}

// Makes a token for one audience; later reviews accept it.
ModelAnswer ApiServerModel::request_token(const Call& call) {
    auto request = Json::parse(call.request->body);
    const auto* audiences = request ? find_at(request->value(), {"spec", "audiences"}) : nullptr;
    const auto seconds = request
                             ? control::integer_at(request->value(), {"spec", "expirationSeconds"})
                             : std::nullopt;
    if (audiences == nullptr || audiences->size() != 1 || seconds.value_or(600) < 600) {
        return status_answer(
            422, "Invalid", "spec.expirationSeconds: may not be less than 10 minutes");
    }
    auto user = value::object();
    user["username"] =
        value(fmt::format("system:serviceaccount:{}:{}", call.key.ns, call.key.name));
    const std::string token = fmt::format("token.of.{}-{}", call.key.name, ++uids_);
    add_token(token, Json(std::move(user)), {audiences->at(0).as_string()});
    auto answer = request->value();
    answer["status"]["token"] = value(token);
    return {201, answer.serialize(), std::nullopt};
}

}  // namespace stoker::test
