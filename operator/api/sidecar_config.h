#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "operator/api/choices.h"
#include "operator/api/contract.h"
#include "operator/api/dataset.h"
#include "operator/api/json.h"

// Configuration of a sidecar and a trainer before they start: the sidecar's settings
// (docs/reference/sidecar-config.md) and the trainer's STOKER_DATASETS.
namespace stoker::control {

// The origin of samples, for the sidecar and the trainer. Credentials are in files or the
// environment, never here.
struct OriginConfig {
    std::string
        uri;  // s3://bucket/prefix, https://host/folder, or file:///path inside the container
    std::string endpoint;  // empty: the region's default
    std::string region;
    std::optional<bool> path_style;     // none: depends on the endpoint
    std::string credentials_directory;  // of the sidecar; empty: the environment's
    std::string ca_file{};              // to trust instead of the system's
    std::string index{};                // of an HTTP source; empty: the default
    bool authenticate = false;          // the trainer's credentials for HTTP are for this source
    DatasetFormat format = DatasetFormat::kObjects;
    std::optional<Bytes> block_size{};  // for the sidecar; none: its default
    std::optional<DatasetRecords> records{};

    bool operator==(const OriginConfig&) const = default;
};

struct DatasetConfig {
    std::string name;          // stoker.open(name)
    std::string uid;           // names the node directory, and the dataset to the operator
    std::string directory;     // the node directory, inside both containers
    std::string files_socket;  // of the node program, for stoker-files; empty: not shown as files
    OriginConfig origin;
    Contract contract = Contract::kExact;
    ContractParameters parameters;
    EvictionPolicy eviction = EvictionPolicy::kAuto;
    bool guest = false;   // the Dataset belongs to another namespace and is shared
    bool pinned = false;  // ranks on several nodes read it: its revision is pinned
    bool peers = false;   // nodes fetch its samples from each other
    // Age of another attempt's listing from which on it is not used; 0: none is; none: any age.
    std::optional<std::int64_t> listing_age_seconds_max{};

    bool operator==(const DatasetConfig&) const = default;
};

struct SidecarConfig {
    std::string socket;
    std::string socket_mode;  // octal; empty: the sidecar's default
    std::vector<DatasetConfig> datasets;
    Bytes window_bytes{};
    std::int64_t reserved_free_percent = 15;
    std::string http_listen;
    std::vector<std::string> http_readers;
    std::string control_endpoint;  // empty: no operator
    std::string control_token_file;
    std::string peers_listen;  // empty: no node fetches from this one
    std::string s3_listen;     // of the pod's S3 endpoint, stoker-s3; empty: none
    std::string training_job;
    std::string training_job_uid;
    std::int64_t end_when_idle_seconds = 0;  // 0: never

    bool operator==(const SidecarConfig&) const = default;
};

// STOKER_SIDECAR_CONFIG of the sidecar, stoker-s3 and stoker-files: one JSON object, which is YAML, too.
// The sidecar has no grant until the operator sends one.
Json to_json(const SidecarConfig& config);

// STOKER_DATASETS: one JSON object, from each dataset's name to its location and to the job's
// limits: "contract" ("exact", "windowed", "importance", "replicate"), with its parameters in
// "sampling".
Json to_json(const std::vector<DatasetConfig>& datasets);

}  // namespace stoker::control
