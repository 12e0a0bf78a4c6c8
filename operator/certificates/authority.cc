#include "operator/certificates/authority.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace stoker::control {

namespace {

constexpr const char* kSigningCertificate = "signing.crt";
constexpr const char* kSigningKey = "signing.key";
constexpr const char* kNextCertificate = "next.crt";
constexpr const char* kNextKey = "next.key";
constexpr const char* kPrevious = "previous.crt";
constexpr const char* kBridge = "bridge.crt";
constexpr const char* kBundle = "ca.crt";

std::string value_of(const SecretData& data, const char* key) {
    const auto found = data.find(key);
    return found == data.end() ? "" : found->second;
}

Result<KeyPair> make_next_ca(const std::string& name, const AuthorityTerms& terms, WallTime now) {
    const auto second = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
    return make_ca(fmt::format("{}-{}", name, second), {now - kBackdated, now + terms.ca_lifetime});
}

Status check_ca(const KeyPair& pair, const char* name) {
    STOKER_TRY(const CertificateFacts facts, read_certificate(pair.certificate));
    if (!facts.is_ca) {
        return fail(ErrorCode::kCorruption, fmt::format("{} is not a CA certificate", name));
    }
    return check_pair(pair);
}

Status begin_rotation(
    Authority& authority, const std::string& name, const AuthorityTerms& terms, WallTime now) {
    STOKER_TRY(const CertificateFacts signing, read_certificate(authority.signing.certificate));
    STOKER_TRY(authority.next, make_next_ca(name, terms, now));
    // The bridge expires with the old CA: it links the old trust to the new key.
    STOKER_TRY(
        authority.bridge,
        cross_sign(
            authority.next->certificate,
            authority.signing,
            {now - kBackdated, signing.validity.not_after}));
    authority.previous.clear();
    return {};
}

void promote(Authority& authority) {
    authority.previous = std::exchange(authority.signing, *std::move(authority.next)).certificate;
    authority.next.reset();
}

Result<Validity> leaf_validity(
    const Authority& authority, const AuthorityTerms& terms, WallTime now) {
    STOKER_TRY(const CertificateFacts ca, read_certificate(authority.signing.certificate));
    return Validity{now - kBackdated, std::min(now + terms.leaf_lifetime, ca.validity.not_after)};
}

// The bridge certificate to send after a leaf; "": every client trusts the signing CA itself.
std::string sent_bridge(const Authority& authority) {
    return authority.previous.empty() ? std::string{} : authority.bridge;
}

}  // namespace

SecretData print_authority(const Authority& authority) {
    SecretData data{
        {kSigningCertificate, authority.signing.certificate},
        {kSigningKey, authority.signing.key},
        {kBundle, trust_bundle(authority)}};
    if (authority.next) {
        data[kNextCertificate] = authority.next->certificate;
        data[kNextKey] = authority.next->key;
    }
    if (!authority.previous.empty()) {
        data[kPrevious] = authority.previous;
    }
    if (!authority.bridge.empty()) {
        data[kBridge] = authority.bridge;
    }
    return data;
}

Result<std::optional<Authority>> parse_authority(const SecretData& data) {
    if (data.empty()) {
        return std::optional<Authority>{};
    }
    Authority authority;
    authority.signing = {value_of(data, kSigningCertificate), value_of(data, kSigningKey)};
    STOKER_TRY_VOID(check_ca(authority.signing, kSigningCertificate));
    if (data.contains(kNextCertificate)) {
        authority.next = KeyPair{value_of(data, kNextCertificate), value_of(data, kNextKey)};
        STOKER_TRY_VOID(check_ca(*authority.next, kNextCertificate));
    }
    authority.previous = value_of(data, kPrevious);
    authority.bridge = value_of(data, kBridge);
    for (const std::string* optional : {&authority.previous, &authority.bridge}) {
        if (!optional->empty()) {
            STOKER_TRY_VOID(read_certificate(*optional));
        }
    }
    return std::optional<Authority>{std::move(authority)};
}

Result<Authority> advance_authority(
    const std::optional<Authority>& before,
    const std::string& name,
    const AuthorityTerms& terms,
    WallTime now) {
    Authority after;
    if (!before) {
        STOKER_TRY(after.signing, make_next_ca(name, terms, now));
        return after;
    }
    after = *before;
    STOKER_TRY(const CertificateFacts signing, read_certificate(after.signing.certificate));
    const WallTime end = signing.validity.not_after;
    if (!after.next && now >= end - terms.ca_renewal) {
        STOKER_TRY_VOID(begin_rotation(after, name, terms, now));
    }
    if (after.next) {
        STOKER_TRY(const CertificateFacts next, read_certificate(after.next->certificate));
        const WallTime trusted_since = next.validity.not_before + kBackdated;
        if (now >= trusted_since + terms.overlap || now >= end - terms.leaf_lifetime) {
            promote(after);
        }
    }
    if (!after.previous.empty()) {
        STOKER_TRY(const CertificateFacts previous, read_certificate(after.previous));
        if (now >= previous.validity.not_after) {
            after.previous.clear();
            after.bridge.clear();
        }
    }
    return after;
}

std::string trust_bundle(const Authority& authority) {
    return authority.signing.certificate +
           (authority.next ? authority.next->certificate : std::string{}) + authority.previous;
}

Result<KeyPair> issue_leaf(
    const Authority& authority,
    const std::vector<std::string>& dns_names,
    const AuthorityTerms& terms,
    WallTime now) {
    STOKER_TRY(const Validity validity, leaf_validity(authority, terms, now));
    STOKER_TRY(KeyPair leaf, make_leaf(authority.signing, dns_names, validity));
    leaf.certificate += sent_bridge(authority);
    return leaf;
}

Result<std::string> issue_peer_leaf(
    const Authority& authority,
    const std::string& request,
    const std::vector<std::string>& uris,
    const AuthorityTerms& terms,
    WallTime now) {
    STOKER_TRY(const Validity validity, leaf_validity(authority, terms, now));
    STOKER_TRY(const std::string leaf, certify_peer(authority.signing, request, uris, validity));
    return leaf + sent_bridge(authority);
}

bool is_due(const Validity& leaf, WallTime now) {
    const Duration life = leaf.not_after - (leaf.not_before + kBackdated);
    return now < leaf.not_before || now >= leaf.not_after - life / 3;
}

}  // namespace stoker::control
