#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/config/address_ranges.h"
#include "common/domain/block_format.h"
#include "common/domain/sample_format.h"
#include "sidecar/config/contract_terms.h"

namespace stoker::sidecar {

// Where a dataset's bytes come from.
struct SourceConfig {
    std::string uri;       // s3://bucket/prefix, http(s)://host/folder or file:///directory
    std::string index;     // of an HTTP server's folder: the list of objects; empty: index.txt
    std::string endpoint;  // of the S3 API, empty: AWS by region
    std::string region = "us-east-1";
    // http://host/bucket/key instead of http://bucket.host/key; nullopt: chosen by the endpoint
    std::optional<bool> path_style;
    std::string credentials_directory;  // files AWS_ACCESS_KEY_ID, …; or
    std::string credentials_file;       // JSON that another program renews; or the environment
    std::string ca_file;                // CAs to trust instead of the system's
    domain::SampleFormat format = domain::SampleFormat::kObjects;
    Bytes block_bytes = domain::kBlockBytesDefault;  // of format kBlocks
    domain::RecordRows records{};                    // of format kRecords

    bool operator==(const SourceConfig&) const = default;
};

// Which residents to evict for a new sample when the grant is full. kAuto: none until a job's
// contract has its own policy.
enum class EvictionKind : std::uint8_t { kAuto, kNever, kLru, kLfu };

struct DatasetConfig {
    std::string name;  // as clients send it in their Hello
    std::string uid;   // the operator's id of the dataset; default: the name
    SourceConfig source;
    std::string directory;         // the node directory as this process sees it
    std::string client_directory;  // its data/ as clients see it; <directory>/data
    std::string files_socket;  // of the node program, for stoker-files; empty: not shown as files
    Bytes grant_bytes = Bytes::unlimited();  // until the operator's first grant
    Bytes window_bytes = mib(256);
    Bytes memory_bytes = mib(64);  // payloads in flight from the origin to the disk
    Bytes readahead_bytes = mib(32);
    Bytes page_cache_bytes = Bytes::unlimited();
    std::uint32_t max_in_flight = 512;
    double reserved_free = 0.15;  // share of the file system that stays free
    bool guest = false;           // another namespace's, shared with ours; needs no key of ours
    bool pinned = false;  // ranks on other nodes read it, too: the operator pins its revision
    bool peers = false;   // nodes fetch its samples from each other
    // Listings of other attempts that are this old or older are not used; zero: none is; nullopt: any
    // age. The attempt that reads one keeps it.
    std::optional<Duration> listing_age_max;
    EvictionKind eviction = EvictionKind::kAuto;
    Duration step_aside_window = std::chrono::seconds{5};  // core/bypass_controller.h; zero: never
    std::optional<ContractTerms> contract;  // limits of trainers' requests; nullopt: none
    // Value of the cache to each job, by uid, until the operator sends it; absent: all equal.
    std::map<std::string, double> weights;

    bool operator==(const DatasetConfig&) const = default;
};

// The link to the operator; without an endpoint there is no link, and the configured grants apply.
struct ControlConfig {
    std::string endpoint;     // host:port
    std::string ca_file;      // PEM; or
    std::string ca_pem;       // $STOKER_CONTROL_CA
    std::string token_file;   // projected ServiceAccount token, read anew for every connection
    std::string server_name;  // name in its certificate if not the endpoint's host

    bool operator==(const ControlConfig&) const = default;
};

// Connections between the sidecars of a dataset on different nodes; without `listen` there are none.
struct PeersConfig {
    std::string listen;  // host:port to accept connections at; port 0: any free one
    // Address at which other nodes reach this one: host:port, or a host (IPv6 in brackets) to which
    // the bound port is added.
    std::string address;

    bool operator==(const PeersConfig&) const = default;
};

// This sidecar's identity in Kubernetes; all empty elsewhere.
struct JobConfig {
    std::string pod_namespace;
    std::string pod;
    std::string node;
    std::string training_job;
    std::string training_job_uid;
    std::string attempt_uid;  // of the batch/v1 Job that our pod belongs to
    std::uint32_t rank = 0;

    bool operator==(const JobConfig&) const = default;
};

struct SidecarConfig {
    std::string socket_path = "/stoker/run/stoker.sock";
    std::uint32_t socket_mode = 0660;
    std::uint32_t connections_max = 1024;
    std::uint32_t io_threads = 2;
    Duration end_when_idle{};  // core/idle_watch.h; zero: never
    std::string http_listen;   // host:port of /metrics, /healthz, /readyz, /status; empty: none
    std::string s3_listen;     // loopback host:port of stoker-s3, sidecar/s3; empty: none
    config::AddressRanges http_readers;  // may read /metrics and /status, besides loopback
    ControlConfig control;
    PeersConfig peers;
    JobConfig job;
    std::vector<DatasetConfig> datasets;

    bool operator==(const SidecarConfig&) const = default;
};

// The value of an environment variable, nullopt where it is not set.
using EnvLookup = std::function<std::optional<std::string>(const char* name)>;

// Settings: docs/reference/sidecar-config.md. The job's fields fall back to $POD_NAMESPACE,
// $POD_NAME, $NODE_NAME, $ATTEMPT_UID and $JOB_COMPLETION_INDEX, control.caFile to
// $STOKER_CONTROL_CA, peers.address to $POD_IP. kInvalidArgument: lists every mistake, one per line.
Result<SidecarConfig> parse_sidecar_config(std::string_view text, const EnvLookup& env);

// Parses the file at `path`, or if that is empty the text in $STOKER_SIDECAR_CONFIG. Errors also as
// read_file().
Result<SidecarConfig> load_sidecar_config(const std::string& path, const EnvLookup& env);

}  // namespace stoker::sidecar
