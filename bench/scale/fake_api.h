#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "bench/scale/object_table.h"
#include "common/base/guarded.h"
#include "operator/kube/resource_kind.h"
#include "tests/support/api_server/target.h"
#include "tests/support/http_script_server.h"
#include "tests/support/token_issuer.h"

namespace stoker::bench {

// A kube-apiserver for `make scale`, over HTTP on loopback: lists (at version 0 in one answer, as
// the real server's watch cache does; else in pages), watches, create, replace, apply, delete,
// TokenReviews, and the keys of its tokens. It stores text and checks nothing. Only merge patches are
// merged: an apply replaces the object, or its status. Thread-safe.
class FakeApi {
public:
    // Called after an object was created over HTTP, on the connection's thread.
    using OnCreate = std::function<void(std::string_view plural, const control::ObjectKey& key)>;

    // `tokens` must outlive it.
    FakeApi(const testing::TokenIssuer& tokens, OnCreate on_create);

    ~FakeApi() { stopping_ = true; }

    FakeApi(const FakeApi&) = delete;
    FakeApi& operator=(const FakeApi&) = delete;

    [[nodiscard]] std::string url() const { return server_->url(""); }

    // Stores an object as if it had been created.
    void put(const control::ResourceKind& kind, const control::ObjectKey& key, StoredObject object);

    // Requests by "VERB resource", such as "PATCH trainingjobs".
    [[nodiscard]] std::map<std::string, std::uint64_t> requests() { return *requests_.lock(); }

private:
    struct Call {
        const test::ScriptRequest& request;
        test::ScriptConnection& connection;
        test::Target target;
        ObjectTable* table = nullptr;
        control::ObjectKey key;
    };

    bool serve(const test::ScriptRequest& request, test::ScriptConnection& connection);
    bool list(const Call& call);
    void watch(const Call& call);
    void create(const Call& call);
    void write(const Call& call);
    static void review_token(const Call& call);
    [[nodiscard]] std::string issuer_page(const std::string& path) const;

    std::uint64_t next_version() { return ++version_; }

    const testing::TokenIssuer& tokens_;
    OnCreate on_create_;
    std::map<std::string, std::unique_ptr<ObjectTable>> tables_;  // by "group/plural"; fixed
    std::atomic<std::uint64_t> version_{1000};
    std::atomic<bool> stopping_{false};
    Guarded<std::map<std::string, std::uint64_t>> requests_;
    std::unique_ptr<test::HttpScriptServer> server_;  // last: its threads use the members above
};

}  // namespace stoker::bench
