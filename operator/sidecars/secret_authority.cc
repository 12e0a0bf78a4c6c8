#include "operator/sidecars/secret_authority.h"

#include <algorithm>
#include <utility>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "common/log/log.h"
#include "operator/kube/access.h"

namespace stoker::control {

namespace {

using web::json::value;

constexpr int kTries = 5;

Result<SecretData> read_data(const Object& secret) {
    SecretData data;
    const value* fields = find_at(secret.raw.value(), {"data"});
    if (fields == nullptr || !fields->is_object()) {
        return data;
    }
    for (const auto& [name, text] : fields->as_object()) {
        if (!text.is_string()) {
            return fail(ErrorCode::kCorruption, fmt::format("{} is not a text", name));
        }
        STOKER_TRY(data[name], base64_decode(text.as_string()));
    }
    return data;
}

Json secret_json(const ObjectKey& key, const Object* before, const SecretData& data) {
    value json = before != nullptr ? before->raw.value() : value::object();
    json["apiVersion"] = value("v1");
    json["kind"] = value("Secret");
    json["metadata"]["name"] = value(key.name);
    json["metadata"]["namespace"] = value(key.ns);
    json["metadata"]["labels"]["app.kubernetes.io/managed-by"] = value("stoker-operator");
    if (before == nullptr) {
        json["type"] = value("Opaque");
    }
    json["data"] = value::object();
    for (const auto& [name, text] : data) {
        json["data"][name] = value(base64_encode(text));
    }
    return Json(std::move(json));
}

void tell(
    const std::string& secret, const std::optional<Authority>& before, const Authority& after) {
    if (!before) {
        log::info("created a CA", {{"secret", secret}});
    } else if (before->signing != after.signing) {
        log::info("a new CA signs", {{"secret", secret}});
    } else if (!before->next && after.next) {
        log::info("created the next CA; new clients trust it from now on", {{"secret", secret}});
    }
}

}  // namespace

SecretAuthority::SecretAuthority(ApiClient& client, Options options, const Clock& clock)
    : client_(client),
      options_(std::move(options)),
      clock_(clock) {}

Result<SecretAuthority::Found> SecretAuthority::find() {
    Found found;
    auto object = client_.get(kinds::kSecrets, options_.secret);
    if (!object && object.error().code == ErrorCode::kNotFound) {
        return found;
    }
    if (!object) {
        return fail(object.error());
    }
    const std::string what = fmt::format("Secret {}", to_string(options_.secret));
    const auto data = read_data(*object);
    if (!data) {
        return fail(ErrorCode::kCorruption, data.error().prefixed(what).message);
    }
    auto authority = parse_authority(*data);
    if (!authority) {
        return fail(authority.error().prefixed(what));
    }
    found.object = *std::move(object);
    found.authority = *std::move(authority);
    return found;
}

Status SecretAuthority::write(const Found& found, const Authority& authority) {
    const Json body = secret_json(
        options_.secret, found.object ? &*found.object : nullptr, print_authority(authority));
    const auto written = found.object ? client_.replace(kinds::kSecrets, options_.secret, body)
                                      : client_.create(kinds::kSecrets, options_.secret.ns, body);
    return written ? Status{} : fail(written.error());
}

// Returns the authority that all replicas agree on.
Result<Authority> SecretAuthority::settle() {
    for (int left = kTries; left > 0; --left) {
        STOKER_TRY(const Found found, find());
        const std::optional<Authority>& before = found.authority ? found.authority : known_;
        STOKER_TRY(
            Authority after,
            advance_authority(before, options_.secret.name, options_.terms, clock_.wall_now()));
        if (found.authority == after) {
            return after;
        }
        const Status written = write(found, after);
        if (written) {
            tell(options_.secret.name, before, after);
            return after;
        }
        const ErrorCode code = written.error().code;
        if (code != ErrorCode::kAlreadyExists && code != ErrorCode::kConflict) {
            return fail(written.error());
        }
    }
    return fail(ErrorCode::kConflict, "other replicas keep changing the CA's Secret");
}

Status SecretAuthority::renew_leaf(const Authority& authority) {
    const std::string under = authority.signing.certificate + authority.bridge;
    if (issued_under_ == under) {
        STOKER_TRY(const CertificateFacts leaf, read_certificate(leaf_.certificate));
        if (!is_due(leaf.validity, clock_.wall_now())) {
            return {};
        }
    }
    STOKER_TRY(leaf_, issue_leaf(authority, options_.dns_names, options_.terms, clock_.wall_now()));
    issued_under_ = under;
    return {};
}

Result<ServedCertificate> SecretAuthority::load() {
    STOKER_TRY(Authority authority, settle());
    STOKER_TRY_VOID(renew_leaf(authority));
    ServedCertificate served{leaf_, trust_bundle(authority)};
    known_ = std::move(authority);
    *signer_.lock() = known_;
    return served;
}

Result<PeerCertificate> SecretAuthority::issue_peer(
    const std::string& request_pem, const std::vector<std::string>& uris) {
    const std::optional<Authority> signer = *signer_.lock();
    if (!signer) {
        return fail(ErrorCode::kUnavailable, "there is no CA yet");
    }
    const WallTime now = clock_.wall_now();
    PeerCertificate result;
    STOKER_TRY(result.chain, issue_peer_leaf(*signer, request_pem, uris, options_.terms, now));
    STOKER_TRY(const CertificateFacts leaf, read_certificate(result.chain));
    const Duration left = std::max(leaf.validity.not_after - now, Duration{});
    // As is_due(): a third of the lifetime is left then.
    result.renew_seconds =
        static_cast<std::uint32_t>(std::chrono::floor<std::chrono::seconds>(left * 2 / 3).count());
    result.trust = trust_bundle(*signer);
    return result;
}

}  // namespace stoker::control
