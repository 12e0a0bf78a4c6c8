#include "bench/scale/fake_api.h"

#include <chrono>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "operator/api/json.h"
#include "tests/support/api_server/json_patch.h"

namespace stoker::bench {

using control::ObjectKey;
using control::ResourceKind;
using test::ScriptConnection;
using test::ScriptRequest;

namespace {

const std::string kNotFound =
    R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404})";
const std::string kExists =
    R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409})";
const std::string kMissing = "404 page not found";
constexpr std::string_view kJson = "Content-Type: application/json\r\n";
constexpr std::size_t kChunk = 256 * 1024;

std::string table_name(const std::string& group, const std::string& plural) {
    return group + "/" + plural;
}

std::string query_of(const test::Target& target, const char* name) {
    const auto found = target.query.find(name);
    return found == target.query.end() ? "" : found->second;
}

// The fields of a JSON object without its braces.
std::string fields_of(const web::json::value& object) {
    const std::string text = object.serialize();
    return text.substr(1, text.size() - 2);
}

// An object from a request's body: everything except apiVersion, kind and status.
StoredObject from_body(web::json::value document, const ObjectKey& key, std::uint64_t version) {
    StoredObject object;
    web::json::value meta = document.at("metadata");
    for (const char* name : {"resourceVersion", "uid", "creationTimestamp", "namespace"}) {
        if (meta.has_field(name)) {
            meta.erase(name);
        }
    }
    if (!key.ns.empty()) {
        meta["namespace"] = web::json::value(key.ns);
    }
    meta["name"] = web::json::value(key.name);
    meta["uid"] = web::json::value(fmt::format("made-{}", version));
    meta["creationTimestamp"] = web::json::value("2026-01-01T00:00:00Z");
    object.meta = fields_of(meta);
    if (document.has_field("status")) {
        object.status = document.at("status").serialize();
    }
    for (const char* name : {"metadata", "status", "apiVersion", "kind"}) {
        if (document.has_field(name)) {
            document.erase(name);
        }
    }
    const std::string rest = fields_of(document);
    object.body = rest.empty() ? "" : "," + rest;
    return object;
}

bool is_merge(const ScriptRequest& request) {
    const auto type = request.headers.find("content-type");
    return type != request.headers.end() && type->second == "application/merge-patch+json";
}

bool send_chunk(ScriptConnection& connection, std::string_view bytes) {
    return connection.send(fmt::format("{:x}\r\n", bytes.size())) && connection.send(bytes) &&
           connection.send("\r\n");
}

void open_stream(ScriptConnection& connection) {
    connection.send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
}

}  // namespace

FakeApi::FakeApi(const testing::TokenIssuer& tokens, OnCreate on_create)
    : tokens_(tokens),
      on_create_(std::move(on_create)) {
    namespace kinds = control::kinds;
    for (const ResourceKind& kind :
         {kinds::kPods,
          kinds::kServices,
          kinds::kConfigMaps,
          kinds::kSecrets,
          kinds::kNodes,
          kinds::kNamespaces,
          kinds::kJobs,
          kinds::kLeases,
          kinds::kEvents,
          kinds::kTrainingJobs,
          kinds::kDatasets,
          kinds::kDatasetWarmups,
          kinds::kCachePools,
          kinds::kCacheQuotas}) {
        tables_[table_name(kind.group, kind.plural)] =
            std::make_unique<ObjectTable>(kind.api_version(), kind.kind);
    }
    server_ = std::make_unique<test::HttpScriptServer>([this](ScriptConnection& connection) {
        while (const auto request = connection.read_request()) {
            if (!serve(*request, connection)) {
                return;
            }
        }
    });
}

void FakeApi::put(const ResourceKind& kind, const ObjectKey& key, StoredObject object) {
    tables_.at(table_name(kind.group, kind.plural))->put(key, std::move(object), next_version());
}

// False: close the connection.
bool FakeApi::serve(const ScriptRequest& request, ScriptConnection& connection) {
    Call call{request, connection, test::parse_target(request.target), nullptr, {}};
    const std::string& plural = call.target.plural;
    const bool watches = query_of(call.target, "watch") == "1";
    (*requests_.lock())[(watches ? "WATCH" : request.method) + " " + plural] += 1;
    if (plural == "tokenreviews") {
        review_token(call);
        return true;
    }
    if (const std::string page = issuer_page(call.target.path); !page.empty()) {
        connection.reply(200, page, kJson);
        return true;
    }
    const auto table = tables_.find(table_name(call.target.group, plural));
    if (table == tables_.end()) {
        connection.reply(404, kMissing);
        return true;
    }
    call.table = table->second.get();
    call.key = {call.target.ns, call.target.name};
    if (watches) {
        watch(call);
        return false;
    }
    if (call.key.name.empty() && request.method == "GET") {
        return list(call);
    }
    request.method == "POST" ? create(call) : write(call);
    return true;
}

bool FakeApi::list(const Call& call) {
    const Selection selection{call.target.ns, query_of(call.target, "labelSelector")};
    const std::string limit_text = query_of(call.target, "limit");
    const bool cached = query_of(call.target, "resourceVersion") == "0";
    const std::size_t limit = cached || limit_text.empty() ? SIZE_MAX : std::stoul(limit_text);
    const std::string from = query_of(call.target, "continue");
    const std::size_t slash = from.find('/');
    const ObjectKey first =
        from.empty() ? ObjectKey{} : ObjectKey{from.substr(0, slash), from.substr(slash + 1)};
    const std::uint64_t version = version_;
    const auto keys = call.table->keys(selection, first);
    open_stream(call.connection);
    std::string text = R"({"kind":"List","apiVersion":"v1","items":[)";
    std::size_t count = 0;
    for (; count < keys.size() && count < limit; ++count) {
        const auto object = call.table->find(keys[count]);
        text += count == 0 ? "" : ",";
        text += object ? call.table->text_of(*object) : "null";
        if (text.size() > kChunk) {
            if (!send_chunk(call.connection, text)) {
                return false;
            }
            text.clear();
        }
    }
    const std::string next =
        count < keys.size() ? keys[count].ns + "/" + keys[count].name : std::string();
    text +=
        fmt::format(R"(],"metadata":{{"resourceVersion":"{}","continue":"{}"}}}})", version, next);
    return send_chunk(call.connection, text) && call.connection.send("0\r\n\r\n");
}

void FakeApi::watch(const Call& call) {
    const Selection selection{call.target.ns, query_of(call.target, "labelSelector")};
    const std::string asked = query_of(call.target, "resourceVersion");
    std::uint64_t version = asked.empty() ? version_.load() : std::stoull(asked);
    open_stream(call.connection);
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::seconds{std::stol("0" + query_of(call.target, "timeoutSeconds"))};
    while (!stopping_ && std::chrono::steady_clock::now() < end) {
        const WatchLines news = call.table->wait_for_changes(selection, version);
        version = news.version;
        std::string text;
        for (const Text& line : news.lines) {
            text += *line;
        }
        if (!text.empty() && !send_chunk(call.connection, text)) {
            return;
        }
    }
    call.connection.send("0\r\n\r\n");
}

void FakeApi::create(const Call& call) {
    web::json::value document = web::json::value::parse(call.request.body);
    ObjectKey key = call.key;
    key.name = control::string_at(document, {"metadata", "name"});
    if (call.table->find(key)) {
        call.connection.reply(409, kExists, kJson);
        return;
    }
    const std::uint64_t version = next_version();
    const std::string text =
        call.table->put(key, from_body(std::move(document), key, version), version);
    on_create_(call.target.plural, key);
    call.connection.reply(201, text, kJson);
}

void FakeApi::write(const Call& call) {
    const auto found = call.table->find(call.key);
    const std::string& method = call.request.method;
    const bool is_patch = method == "PATCH" && call.target.subresource.empty();
    const bool merges = is_patch && is_merge(call.request);
    if (!found && (!is_patch || merges)) {
        call.connection.reply(404, kNotFound, kJson);
        return;
    }
    if (method == "GET") {
        call.connection.reply(200, call.table->text_of(*found), kJson);
        return;
    }
    if (method == "DELETE") {
        call.table->erase(call.key, next_version());
        call.connection.reply(200, R"({"kind":"Status","status":"Success"})", kJson);
        return;
    }
    web::json::value document = web::json::value::parse(call.request.body);
    if (merges) {
        auto merged = web::json::value::parse(call.table->text_of(*found));
        test::merge_patch(merged, document);
        document = std::move(merged);
    }
    const std::uint64_t version = next_version();
    const std::string text =
        call.target.subresource == "status"
            ? call.table->put_status(call.key, document.at("status").serialize(), version)
            : call.table->put(call.key, from_body(std::move(document), call.key, version), version);
    call.connection.reply(200, text, kJson);
}

// Believes any token: it is the bench's own.
void FakeApi::review_token(const Call& call) {
    const web::json::value review = web::json::value::parse(call.request.body);
    const std::string token = control::string_at(review, {"spec", "token"});
    const std::size_t first = token.find('.');
    const auto claims = web::json::value::parse(
        testing::from_base64url(token.substr(first + 1, token.find('.', first + 1) - first - 1)));
    const auto at = [&](const char* what, const char* field) {
        return control::string_at(claims, {"kubernetes.io", what, field});
    };
    call.connection.reply(
        201,
        fmt::format(
            R"({{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{{}},"status":{{)"
            R"("authenticated":true,"audiences":["stoker.dev"],"user":{{"username":"{}","uid":"{}",)"
            R"("groups":["system:serviceaccounts","system:authenticated"],"extra":{{)"
            R"("authentication.kubernetes.io/pod-name":["{}"],)"
            R"("authentication.kubernetes.io/pod-uid":["{}"],)"
            R"("authentication.kubernetes.io/node-name":["{}"]}}}}}}}})",
            control::string_at(claims, {"sub"}),
            at("serviceaccount", "uid"),
            at("pod", "name"),
            at("pod", "uid"),
            at("node", "name")),
        kJson);
}

// "" if the issuer has no such page.
std::string FakeApi::issuer_page(const std::string& path) const {
    if (path == "/.well-known/openid-configuration") {
        return testing::TokenIssuer::configuration();
    }
    return path == "/openid/v1/jwks" ? tokens_.key_set() : "";
}

}  // namespace stoker::bench
