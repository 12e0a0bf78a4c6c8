#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/client.h"

namespace stoker::test {

// An ApiClient that records calls and returns preset answers. Not thread-safe.
class FakeApiClient final : public control::ApiClient {
public:
    struct Call {
        std::string verb;  // "create", "apply_status", "remove", …
        std::string plural;
        control::ObjectKey key;
        std::string body;
    };

    std::vector<Call> calls;
    std::map<control::ObjectKey, control::Object> objects;  // for get()
    std::vector<control::Object> listed;                    // for list()
    // If set, every call fails with this error.
    std::optional<Error> failure;
    // Creating an object of this plural (first) fails with this error (second).
    std::optional<std::pair<std::string, Error>> refused;
    std::uint64_t version = 1000;
    // The server's versions of objects that have changed unseen by the caller: removing an older
    // version fails.
    std::map<control::ObjectKey, std::string> newer_versions;
    std::vector<control::ObjectKey> removed;

    [[nodiscard]] std::size_t count(const std::string& verb) const {
        std::size_t found = 0;
        for (const Call& call : calls) {
            found += call.verb == verb ? 1 : 0;
        }
        return found;
    }

    Result<control::Object> get(
        const control::ResourceKind& kind, const control::ObjectKey& key) override {
        calls.push_back({"get", kind.plural, key, ""});
        const auto found = objects.find(key);
        if (found == objects.end()) {
            return fail(ErrorCode::kNotFound, "not there");
        }
        return found->second;
    }

    Result<std::vector<control::Object>> list(
        const control::ResourceKind& kind, const control::Scope& scope) override {
        calls.push_back({"list", kind.plural, {scope.ns, ""}, scope.field_selector});
        if (failure) {
            return fail(*failure);
        }
        return listed;
    }

    Result<control::Object> create(
        const control::ResourceKind& kind,
        const std::string& ns,
        const control::Json& body) override {
        if (refused && refused->first == kind.plural) {
            calls.push_back({"create", kind.plural, {ns, ""}, body.text()});
            return fail(refused->second);
        }
        return answer("create", kind, {ns, ""}, body);
    }

    Result<control::Object> replace(
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const control::Json& body) override {
        return answer("replace", kind, key, body);
    }

    Result<control::Object> apply(
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const control::Json& body) override {
        return answer("apply", kind, key, body);
    }

    Result<control::Object> apply_status(
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const control::Json& body) override {
        return answer("apply_status", kind, key, body);
    }

    Result<control::Object> apply_status_as(
        const std::string& field_manager,
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const control::Json& body) override {
        return answer("apply_status as " + field_manager, kind, key, body);
    }

    Result<control::Object> patch(
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const control::Json& body,
        control::PatchType /*type*/) override {
        return answer("patch", kind, key, body);
    }

    Status remove(
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const control::DeleteParams& params) override {
        calls.push_back({"remove", kind.plural, key, params.uid});
        if (failure) {
            return fail(*failure);
        }
        const auto newer = newer_versions.find(key);
        if (newer != newer_versions.end() && !params.resource_version.empty() &&
            params.resource_version != newer->second) {
            return fail(ErrorCode::kConflict, "another version");
        }
        removed.push_back(key);
        return {};
    }

    Result<control::TokenOwner> review_token(
        std::string_view /*token*/, const std::vector<std::string>& /*audiences*/) override {
        return fail(ErrorCode::kForbidden, "nobody's");
    }

    Status review_access(
        const control::TokenOwner& /*user*/,
        std::string_view /*verb*/,
        std::string_view /*path*/) override {
        return fail(ErrorCode::kForbidden, "nobody may");
    }

private:
    Result<control::Object> answer(
        const std::string& verb,
        const control::ResourceKind& kind,
        const control::ObjectKey& key,
        const control::Json& body) {
        calls.push_back({verb, kind.plural, key, body.text()});
        if (failure) {
            return fail(*failure);
        }
        control::Object object;
        object.key = key;
        object.resource_version = std::to_string(++version);
        object.raw = body;
        return object;
    }
};

}  // namespace stoker::test
