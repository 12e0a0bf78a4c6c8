#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/kube/resource_kind.h"
#include "tests/support/api_server/event_log.h"
#include "tests/support/api_server/field_paths.h"

namespace stoker::test {

using control::ResourceKind;

struct ModelRequest {
    std::string method;
    std::string target;  // path and query as sent
    std::string content_type;
    std::string body;
    std::string manager = "test";  // owner of the fields if the query names none
};

struct WatchCursor {
    std::string resource;  // "batch/jobs"
    std::string api_version;
    std::string kind;
    Selector selector;
    std::uint64_t after = 0;
    bool send_state = false;  // watch without a version: sends existing objects first
    bool bookmarks = false;
    std::int64_t timeout_seconds = 0;
};

struct ModelAnswer {
    int status = 200;
    std::string body;
    std::optional<WatchCursor> watch;  // set: the answer is a stream, see poll()
};

struct WatchBatch {
    std::vector<std::string> lines;
    bool ended = false;  // the watch ends after the last of `lines`
};

// In-memory model of a kube-apiserver for the requests that Stoker sends, without threads, sockets
// or clocks: versions, conflicts, lists in pages, watches with bookmarks and 410, status subresource,
// merge and JSON patches, server-side apply, finalizers, garbage collection by owner, token reviews.
// Left out: admission, schemas and defaulting. tests/integration runs the same contract against
// this and a real server. Not thread-safe.
class ApiServerModel {
public:
    ApiServerModel();

    // Starts serving the kind. With `status_subresource`, writes to the object do not change its
    // status.
    void serve(const ResourceKind& kind, bool status_subresource);
    // As if the kind's CRD were deleted: removes its objects; its paths answer 404.
    void stop_serving(const ResourceKind& kind);

    ModelAnswer handle(const ModelRequest& request, WallTime now);

    // The next lines of a watch; advances the cursor.
    WatchBatch poll(WatchCursor& cursor) const;
    // A bookmark for this watch.
    [[nodiscard]] std::string bookmark(const WatchCursor& cursor) const;

    // Test controls that bypass the API.
    void set_event_capacity(const ResourceKind& kind, std::size_t capacity);
    void compact(const ResourceKind& kind);
    void add_token(const std::string& token, const Json& user, std::vector<std::string> audiences);
    // Grants access to a path that is not a resource; denied by default.
    void allow(const std::string& user, const std::string& verb, const std::string& path);

    [[nodiscard]] std::uint64_t version() const { return version_; }

    // A copy to restore later: resource versions then go back, and those of open watches are too
    // large.
    [[nodiscard]] ApiServerModel backup() const { return *this; }

    [[nodiscard]] std::optional<Json> find(const ResourceKind& kind, const ObjectKey& key) const;
    [[nodiscard]] std::map<ObjectKey, Json> all(const ResourceKind& kind) const;

    [[nodiscard]] std::uint64_t writes() const { return writes_; }

private:
    struct Entry {
        Json object;
        FieldOwners owners;
    };

    struct Table {
        ResourceKind kind;
        bool status_subresource = false;
        std::map<ObjectKey, Entry> entries;
        EventLog log;
    };

    struct TokenOwner {
        Json user;
        std::vector<std::string> audiences;
    };

    // A request being handled.
    struct Call {
        const ModelRequest* request = nullptr;
        Table* table = nullptr;
        ObjectKey key;
        std::string subresource;
        std::map<std::string, std::string> query;
        WallTime now{};
    };

    ModelAnswer dispatch(Call& call);
    ModelAnswer list(const Call& call);
    ModelAnswer watch(const Call& call);
    ModelAnswer create(Call& call);
    ModelAnswer replace(Call& call);
    ModelAnswer patch(Call& call);
    ModelAnswer apply(Call& call);
    ModelAnswer remove(Call& call);
    ModelAnswer review_token(const Call& call) const;
    ModelAnswer review_access(const Call& call) const;
    ModelAnswer request_token(const Call& call);
    ModelAnswer discover(const std::string& path) const;
    ModelAnswer update(Call& call, Entry& entry, web::json::value next, const std::string& owner);
    ModelAnswer insert(Call& call, web::json::value object, const std::string& owner);
    ModelAnswer apply_to(Call& call, Entry& entry, const web::json::value& wanted);
    // May remove `entry`, if the change removes its last finalizer. Returns the object as stored.
    Json store(Table& table, const ObjectKey& key, Entry& entry, web::json::value next);
    void mark_deleted(Table& table, const ObjectKey& key, Entry& entry);
    void erase(Table& table, const ObjectKey& key);
    void collect_garbage();
    [[nodiscard]] bool uid_exists(const std::string& uid) const;
    [[nodiscard]] std::string manager_of(const Call& call) const;

    std::map<std::string, Table> tables_;  // by "group/plural"
    std::map<std::string, TokenOwner> tokens_;
    std::set<std::string> allowed_;  // "user verb path"
    std::uint64_t version_ = 100;
    std::uint64_t uids_ = 0;
    std::uint64_t writes_ = 0;
    WallTime now_{};               // of the last request
    bool something_went_ = false;  // an object was removed: the garbage collector has work
};

// A Kubernetes Status as the server writes it.
ModelAnswer status_answer(int code, const std::string& reason, const std::string& message);

}  // namespace stoker::test
