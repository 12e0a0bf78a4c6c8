#include "sidecar/peers/peer_identity.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <openssl/x509v3.h>

#include "sidecar/peers/openssl.h"

namespace stoker::sidecar {

namespace {

constexpr std::string_view kNamespacePart = "stoker://namespace/";
constexpr std::string_view kDatasetPart = "/dataset/";
constexpr std::size_t kNamespaceBytesMax = 63;
constexpr std::size_t kUidBytesMax = 64;
constexpr std::string_view kNamespaceCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-";
constexpr std::string_view kUidCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

struct Named {
    std::string_view namespace_name;
    std::string_view dataset_uid;
};

bool consists_of(std::string_view text, std::string_view characters, std::size_t bytes_max) {
    return !text.empty() && text.size() <= bytes_max &&
           text.find_first_not_of(characters) == std::string_view::npos;
}

std::optional<Named> parse(std::string_view uri) {
    if (!uri.starts_with(kNamespacePart)) {
        return std::nullopt;
    }
    uri.remove_prefix(kNamespacePart.size());
    const std::size_t end = uri.find('/');
    if (end == std::string_view::npos || !uri.substr(end).starts_with(kDatasetPart)) {
        return std::nullopt;
    }
    const Named named{uri.substr(0, end), uri.substr(end + kDatasetPart.size())};
    if (!consists_of(named.namespace_name, kNamespaceCharacters, kNamespaceBytesMax) ||
        !consists_of(named.dataset_uid, kUidCharacters, kUidBytesMax)) {
        return std::nullopt;
    }
    return named;
}

struct NamesFree {
    void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

}  // namespace

Result<PeerIdentity> identity_of_uris(const std::vector<std::string_view>& uris) {
    if (uris.empty() || uris.size() > kPeerDatasetsMax) {
        return fail(
            ErrorCode::kForbidden,
            fmt::format("a peer's certificate names {} datasets", uris.size()));
    }
    PeerIdentity identity;
    for (const std::string_view uri : uris) {
        const auto named = parse(uri);
        if (!named) {
            return fail(
                ErrorCode::kForbidden, "a peer's certificate names something other than a dataset");
        }
        if (identity.dataset_uids.empty()) {
            identity.namespace_name = named->namespace_name;
        }
        if (identity.namespace_name != named->namespace_name) {
            return fail(ErrorCode::kForbidden, "a peer's certificate names two namespaces");
        }
        if (std::ranges::find(identity.dataset_uids, named->dataset_uid) !=
            identity.dataset_uids.end()) {
            return fail(ErrorCode::kForbidden, "a peer's certificate has a duplicate dataset");
        }
        identity.dataset_uids.emplace_back(named->dataset_uid);
    }
    return identity;
}

Result<PeerIdentity> identity_of(const X509& certificate) {
    const std::unique_ptr<GENERAL_NAMES, NamesFree> names{static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
    std::vector<std::string_view> uris;
    for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
        const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
        if (name->type != GEN_URI) {
            return fail(ErrorCode::kForbidden, "a peer's certificate has a name that is not a URI");
        }
        const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
        uris.emplace_back(
            reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
            static_cast<std::size_t>(ASN1_STRING_length(uri)));
    }
    return identity_of_uris(uris);
}

}  // namespace stoker::sidecar
