#include "operator/core/spec/check_origins.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "common/base/lower_case.h"
#include "common/domain/http_uri.h"
#include "common/domain/sample_format.h"

namespace stoker::control {

namespace {

// Counts only the datasets on web servers (`http`), or only the others.
Blocker check_secrets_of(
    const std::vector<ResolvedDataset>& datasets, const std::string& ns, bool http) {
    std::set<std::string> secrets;
    for (const ResolvedDataset& dataset : datasets) {
        const DatasetSource& source = dataset.source;
        if (source.secret_ref && dataset.ns == ns &&
            domain::is_http_uri(source.storage_uri) == http) {
            secrets.insert(*source.secret_ref);
        }
    }
    if (secrets.size() <= 1) {
        return {};
    }
    return {
        "SecretsDiffer",
        fmt::format(
            "The datasets {}name different Secrets ({}); today all datasets of a job must use the "
            "same one.",
            http ? "on web servers " : "",
            fmt::join(secrets, ", "))};
}

// Why the dataset cannot be read with its access, and what to do; empty: it can.
std::string refuse_one(const ResolvedDataset& dataset) {
    if (dataset.access == DatasetAccess::kS3 && dataset.source.volume) {
        return fmt::format(
            "Dataset {} cannot be read with access S3, because its source is a directory; use "
            "access SDK.",
            dataset.name);
    }
    if (dataset.access == DatasetAccess::kS3 && domain::is_http_uri(dataset.source.storage_uri)) {
        return fmt::format(
            "Dataset {} cannot be read with access S3, because its source is a web server; use "
            "access SDK or Files.",
            dataset.name);
    }
    const auto format = domain::parse_sample_format(lower_case(choice_text(dataset.format)));
    if (dataset.access != DatasetAccess::kSdk && format && domain::has_shards(*format)) {
        return fmt::format(
            "Dataset {} has format {}, whose samples the library reads; use access SDK, or for "
            "other programs a Dataset of format Blocks.",
            dataset.name,
            choice_text(dataset.format));
    }
    if (dataset.access == DatasetAccess::kSdk && dataset.format == DatasetFormat::kBlocks) {
        return fmt::format(
            "Dataset {} has format Blocks, which the library does not read; use access S3 or "
            "Files.",
            dataset.name);
    }
    return "";
}

// "s3://bucket" of "s3://bucket/prefix".
std::string_view bucket_of(const ResolvedDataset& dataset) {
    const std::string_view uri = dataset.source.storage_uri;
    return uri.substr(0, uri.find('/', std::string_view{"s3://"}.size()));
}

// Another dataset whose bucket has the same name at another endpoint, or nullptr.
const ResolvedDataset* find_namesake(
    const ResolvedDataset& dataset, const std::vector<ResolvedDataset>& datasets) {
    const auto found = std::ranges::find_if(datasets, [&](const ResolvedDataset& other) {
        return !other.source.volume && bucket_of(other) == bucket_of(dataset) &&
               other.source.endpoint != dataset.source.endpoint;
    });
    return found == datasets.end() ? nullptr : &*found;
}

Blocker refuse_access(std::string message) {
    return {"AccessUnsupported", std::move(message)};
}

}  // namespace

Blocker check_secrets(const std::vector<ResolvedDataset>& datasets, const std::string& ns) {
    Blocker blocker = check_secrets_of(datasets, ns, false);
    return blocker.empty() ? check_secrets_of(datasets, ns, true) : blocker;
}

Blocker check_access(const std::vector<ResolvedDataset>& datasets) {
    for (const ResolvedDataset& dataset : datasets) {
        if (std::string why = refuse_one(dataset); !why.empty()) {
            return refuse_access(std::move(why));
        }
        if (dataset.access != DatasetAccess::kS3) {
            continue;
        }
        if (const ResolvedDataset* other = find_namesake(dataset, datasets)) {
            return refuse_access(fmt::format(
                "Datasets {} and {} are in buckets of the same name at different endpoints, which "
                "access S3 cannot tell apart; use access SDK.",
                dataset.name,
                other->name));
        }
    }
    return {};
}

}  // namespace stoker::control
