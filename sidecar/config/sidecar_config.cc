#include "sidecar/config/sidecar_config.h"

#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "common/base/read_file.h"
#include "common/config/config_reader.h"
#include "common/config/host_port.h"
#include "common/domain/http_uri.h"
#include "common/domain/node_directory.h"

namespace stoker::sidecar {

namespace {

using config::ConfigReader;

// sockaddr_un holds 107 bytes and a zero.
constexpr std::size_t kSocketPathBytesMax = 107;

void read_format(ConfigReader& in, domain::SampleFormat& out) {
    std::string word{domain::kSampleFormatNames.front()};
    in.read("format", word);
    if (const auto format = domain::parse_sample_format(word)) {
        out = *format;
    } else {
        in.mistake(
            "format",
            fmt::format("\"{}\" is none of {}", word, fmt::join(domain::kSampleFormatNames, ", ")));
    }
}

void read_records(ConfigReader& in, SourceConfig& out) {
    const bool has_rows = out.format == domain::SampleFormat::kRecords;
    in.section("records", [&](ConfigReader& records) {
        records.read("bytes", out.records.bytes);
        records.read("suffix", out.records.suffix);
        if (out.records.bytes == 0 || out.records.bytes > domain::RecordRows::kBytesMax) {
            records.mistake(
                "bytes", fmt::format("must be between 1 and {}", domain::RecordRows::kBytesMax));
        }
    });
    if (in.has("records") != has_rows) {
        in.mistake("records", has_rows ? "is required" : "belongs to format records");
    }
}

void read_block_size(ConfigReader& in, const SourceConfig& source, Bytes& out) {
    if (!in.has("blockSize")) {
        return;
    }
    in.read("blockSize", out);
    if (source.format != domain::SampleFormat::kBlocks) {
        in.mistake("blockSize", "belongs to format blocks");
    }
    if (out < domain::kBlockBytesMin || out > domain::kBlockBytesMax) {
        in.mistake(
            "blockSize",
            fmt::format(
                "must be between {} and {}",
                to_string(domain::kBlockBytesMin),
                to_string(domain::kBlockBytesMax)));
    }
}

void check_uri(ConfigReader& in, const SourceConfig& source) {
    const std::string_view uri = source.uri;
    const bool is_http = domain::is_http_uri(uri);
    if (!uri.empty() && !is_http && !uri.starts_with("s3://") && !uri.starts_with("file:///")) {
        in.mistake(
            "uri",
            fmt::format(
                "\"{}\" must begin with s3://, https://, http:// or file:/// (an absolute path)",
                uri));
    }
    if (!source.index.empty() && !is_http) {
        in.mistake("index", "belongs to an http:// or https:// origin");
    }
}

void read_source(ConfigReader& in, SourceConfig& out) {
    in.require("uri", out.uri);
    in.read("index", out.index);
    in.read("endpoint", out.endpoint);
    in.read("region", out.region);
    if (in.has("pathStyle")) {
        in.read("pathStyle", out.path_style.emplace());
    }
    in.read("credentialsDirectory", out.credentials_directory);
    in.read("credentialsFile", out.credentials_file);
    if (!out.credentials_directory.empty() && !out.credentials_file.empty()) {
        in.mistake("credentialsFile", "stands beside credentialsDirectory: say one of them");
    }
    in.read("caFile", out.ca_file);
    read_format(in, out.format);
    read_block_size(in, out, out.block_bytes);
    read_records(in, out);
    check_uri(in, out);
}

void read_eviction(ConfigReader& in, EvictionKind& out) {
    std::string word = "auto";
    in.read("eviction", word);
    if (word == "never") {
        out = EvictionKind::kNever;
    } else if (word == "lru") {
        out = EvictionKind::kLru;
    } else if (word == "lfu") {
        out = EvictionKind::kLfu;
    } else if (word != "auto") {
        in.mistake("eviction", fmt::format("\"{}\" is none of auto, never, lru, lfu", word));
    }
}

void read_weights(ConfigReader& in, std::map<std::string, double>& out) {
    std::map<std::string, std::string> texts;
    in.read("weights", texts);
    for (const auto& [job, text] : texts) {
        double weight = -1;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), weight);
        const bool is_whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
        if (!is_whole || !std::isfinite(weight) || weight < 0) {
            in.mistake("weights", fmt::format("\"{}\" of {} is no number of 0 or more", text, job));
            continue;
        }
        out[job] = weight;
    }
}

// Other readers of the dataset: pods, and stoker-files.
void read_readers(ConfigReader& in, DatasetConfig& out) {
    in.read("guest", out.guest);
    in.read("pinned", out.pinned);
    in.read("peers", out.peers);
    in.read("filesSocket", out.files_socket);
    if (in.has("listingAgeMax")) {
        in.read("listingAgeMax", out.listing_age_max.emplace());
    }
}

DatasetConfig read_dataset(ConfigReader& in, std::set<std::string>& names) {
    DatasetConfig out;
    in.require("name", out.name);
    out.uid = out.name;
    in.read("uid", out.uid);
    if (!in.has("origin")) {
        in.mistake("origin", "is required");
    }
    in.section("origin", [&out](ConfigReader& origin) { read_source(origin, out.source); });
    in.require("directory", out.directory);
    out.client_directory = domain::data_folder(out.directory);
    in.read("clientDirectory", out.client_directory);
    in.read("grant", out.grant_bytes);
    in.read("window", out.window_bytes);
    in.read("memory", out.memory_bytes);
    in.read("readahead", out.readahead_bytes);
    in.read("pageCache", out.page_cache_bytes);
    in.read("maxInFlight", out.max_in_flight);
    in.read("reservedFree", out.reserved_free);
    read_readers(in, out);
    read_eviction(in, out.eviction);
    in.read("stepAsideWindow", out.step_aside_window);
    out.contract = read_contract(in);
    read_weights(in, out.weights);
    if (!out.name.empty() && !names.insert(out.name).second) {
        in.mistake("name", fmt::format("\"{}\" is a duplicate name", out.name));
    }
    if (!out.directory.empty() && !out.directory.starts_with('/')) {
        in.mistake("directory", "must be an absolute path");
    }
    if (out.max_in_flight == 0) {
        in.mistake("maxInFlight", "must be at least 1");
    }
    if (!(out.reserved_free >= 0.0 && out.reserved_free < 1.0)) {
        in.mistake("reservedFree", "must be at least 0 and less than 1");
    }
    if (out.window_bytes < mib(1) || out.memory_bytes < mib(1)) {
        in.mistake(out.window_bytes < mib(1) ? "window" : "memory", "must be at least 1Mi");
    }
    return out;
}

void read_http(ConfigReader& in, SidecarConfig& out) {
    in.read("listen", out.http_listen);
    std::vector<std::string> readers;
    in.read("readers", readers);
    if (auto ranges = config::AddressRanges::parse(readers)) {
        out.http_readers = *std::move(ranges);
    } else {
        in.mistake("readers", ranges.error().message);
    }
}

// The endpoint trusts every process that has the pod's loopback key, so it listens on loopback only.
void read_s3_listen(ConfigReader& in, std::string& out) {
    in.read("s3Listen", out);
    if (out.empty()) {
        return;
    }
    const auto listen = config::parse_host_port(out);
    if (!listen) {
        in.mistake("s3Listen", listen.error().message);
    } else if (!config::is_loopback_peer(out)) {
        in.mistake("s3Listen", fmt::format("\"{}\" is not a loopback address", listen->host));
    }
}

void read_control(ConfigReader& in, ControlConfig& out) {
    in.read("endpoint", out.endpoint);
    in.read("caFile", out.ca_file);
    in.read("tokenFile", out.token_file);
    in.read("serverName", out.server_name);
}

// An IPv6 address stands in brackets.
std::string host_text(const std::string& host) {
    const bool is_bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
    return is_bare_v6 ? fmt::format("[{}]", host) : host;
}

// `pod_ip`: the default host of `address`.
void read_peers(ConfigReader& in, const std::string& pod_ip, PeersConfig& out) {
    in.read("listen", out.listen);
    in.read("address", out.address);
    if (out.listen.empty()) {
        return;
    }
    const auto listen = config::parse_host_port(out.listen);
    if (!listen) {
        in.mistake("listen", listen.error().message);
        return;
    }
    if (out.address.empty()) {
        out.address = host_text(pod_ip);
    }
    if (out.address.empty()) {
        in.mistake("address", "is required without $POD_IP");
    } else if (listen->port != 0 && !config::parse_host_port(out.address)) {
        out.address = fmt::format("{}:{}", out.address, listen->port);
    }
}

void read_job(ConfigReader& in, JobConfig& out) {
    in.read("namespace", out.pod_namespace);
    in.read("pod", out.pod);
    in.read("node", out.node);
    in.read("trainingJob", out.training_job);
    in.read("trainingJobUid", out.training_job_uid);
    in.read("attemptUid", out.attempt_uid);
    in.read("rank", out.rank);
}

JobConfig job_of(const EnvLookup& env) {
    JobConfig out;
    out.pod_namespace = env("POD_NAMESPACE").value_or("");
    out.pod = env("POD_NAME").value_or("");
    out.node = env("NODE_NAME").value_or("");
    out.attempt_uid = env("ATTEMPT_UID").value_or("");
    if (const auto index = env("JOB_COMPLETION_INDEX")) {
        std::from_chars(index->data(), index->data() + index->size(), out.rank);
    }
    return out;
}

// Accepts three or four octal digits, as chmod does.
void read_socket_mode(ConfigReader& in, std::uint32_t& mode) {
    std::string text;
    in.read("socketMode", text);
    if (text.empty()) {
        return;
    }
    constexpr std::uint32_t kModeMax = 0777;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
    if (error != std::errc{} || end != text.data() + text.size() || value > kModeMax) {
        in.mistake("socketMode", "is not an octal mode such as \"0660\"");
        return;
    }
    mode = value;
}

}  // namespace

Result<SidecarConfig> parse_sidecar_config(std::string_view text, const EnvLookup& env) {
    STOKER_TRY(auto in, ConfigReader::parse(text));
    SidecarConfig out;
    out.job = job_of(env);
    out.control.ca_pem = env("STOKER_CONTROL_CA").value_or("");

    in.read("socket", out.socket_path);
    read_socket_mode(in, out.socket_mode);
    in.read("maxConnections", out.connections_max);
    in.read("ioThreads", out.io_threads);
    in.section("http", [&out](ConfigReader& http) { read_http(http, out); });
    read_s3_listen(in, out.s3_listen);
    in.read("endWhenIdle", out.end_when_idle);
    in.section("control", [&out](ConfigReader& control) { read_control(control, out.control); });
    in.section("peers", [&](ConfigReader& peers) {
        read_peers(peers, env("POD_IP").value_or(""), out.peers);
    });
    in.section("job", [&out](ConfigReader& job) { read_job(job, out.job); });
    std::set<std::string> names;
    in.each("datasets", [&](ConfigReader& dataset) {
        out.datasets.push_back(read_dataset(dataset, names));
    });
    if (!in.has("datasets")) {
        in.mistake("datasets", "is required");
    }
    if (out.io_threads == 0) {
        in.mistake("ioThreads", "must be at least 1");
    }
    if (out.socket_path.size() > kSocketPathBytesMax) {
        in.mistake("socket", fmt::format("is longer than {} bytes", kSocketPathBytesMax));
    }
    STOKER_TRY_VOID(in.finish());
    return out;
}

Result<SidecarConfig> load_sidecar_config(const std::string& path, const EnvLookup& env) {
    if (!path.empty()) {
        STOKER_TRY(const auto text, stoker::read_file(path));
        return parse_sidecar_config(text, env);
    }
    const auto text = env("STOKER_SIDECAR_CONFIG");
    if (!text) {
        return fail(
            ErrorCode::kInvalidArgument, "neither --config nor $STOKER_SIDECAR_CONFIG is set");
    }
    return parse_sidecar_config(*text, env);
}

}  // namespace stoker::sidecar
