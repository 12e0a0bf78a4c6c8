#include "cli/stoker/pack_options.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "common/base/quantity.h"
#include "common/domain/http_uri.h"
#include "common/domain/source_place.h"
#include "common/flags/flags.h"

namespace stoker::cli {

namespace {

using domain::PackOrder;

constexpr std::string_view kUsage =
    "usage: stoker pack SRC... DST [FLAG]...\n"
    "       stoker pack --rebuild-index DST [FLAG]...\n"
    "Packs small samples into large chunks, which a Dataset with format Chunks reads.\n"
    "SRC: a directory, s3://BUCKET/PREFIX, https://HOST/FOLDER, or .tar files.\n"
    "DST: a directory or s3://BUCKET/PREFIX.\n"
    "An interrupted run continues where it stopped when it is started again.\n";

Result<PackOrder> read_order(std::string_view text) {
    if (text == "random" || text == "listed") {
        return text == "random" ? PackOrder::kRandom : PackOrder::kListed;
    }
    return fail(
        ErrorCode::kInvalidArgument, fmt::format("'{}' is neither random nor listed", text));
}

Result<Bytes> read_chunk_bytes(std::string_view text) {
    constexpr Bytes kMost = mib(512);
    STOKER_TRY(const Bytes bytes, parse_bytes(text));
    if (bytes < kib(4) || bytes > kMost) {
        return fail(ErrorCode::kInvalidArgument, "must be 4Ki to 512Mi");
    }
    return bytes;
}

// Options of the source; unset ones equal the destination's.
struct SourceFlags {
    std::optional<std::string> endpoint{};
    std::optional<std::string> region{};
    std::optional<std::string> ca_file{};
    std::optional<std::string> credentials{};
    std::optional<bool> path_style{};
};

Result<bool> read_switch(std::string_view text) {
    if (text == "true" || text == "false") {
        return text == "true";
    }
    return fail(ErrorCode::kInvalidArgument, "must be true or false");
}

FlagGroup destination_flags(sidecar::OriginOptions& origin) {
    return {
        "S3 (keys as for a sidecar: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, web identity)",
        {{"endpoint",
          "URL",
          "endpoint of the S3 API (default: Amazon's in the region)",
          text_into(origin.endpoint)},
         {"region", "NAME", "default us-east-1", text_into(origin.region)},
         {"ca-file", "FILE", "CAs to trust instead of the system's", text_into(origin.ca_file)},
         {"credentials",
          "DIR",
          "folder with the keys as files, such as a mounted Secret",
          text_into(origin.credentials_directory)},
         {"path-style",
          "BOOL",
          "whether the bucket is in the URL's path (default: depends on the endpoint)",
          read_into(origin.path_style, read_switch)}}};
}

FlagGroup source_flags(SourceFlags& from) {
    return {
        "S3 settings of SRC, if they differ from DST's",
        {{"from-endpoint", "URL", "as --endpoint", text_into(from.endpoint)},
         {"from-region", "NAME", "as --region", text_into(from.region)},
         {"from-ca-file", "FILE", "as --ca-file", text_into(from.ca_file)},
         {"from-credentials", "DIR", "as --credentials", text_into(from.credentials)},
         {"from-path-style", "BOOL", "as --path-style", read_into(from.path_style, read_switch)}}};
}

sidecar::OriginOptions options_of(const SourceFlags& from, sidecar::OriginOptions origin) {
    if (from.endpoint || from.path_style) {
        origin.path_style = from.path_style;  // another server has its own default
    }
    origin.endpoint = from.endpoint.value_or(origin.endpoint);
    origin.region = from.region.value_or(origin.region);
    origin.ca_file = from.ca_file.value_or(origin.ca_file);
    origin.credentials_directory = from.credentials.value_or(origin.credentials_directory);
    return origin;
}

FlagGroup chunk_flags(PackCommand& out) {
    auto& settings = out.pack.settings;
    return {
        "Chunks",
        {{"chunk-bytes",
          "SIZE",
          "minimum payload of each chunk except the last (default 4Mi)",
          read_into(settings.chunk_bytes, read_chunk_bytes)},
         {"order",
          "ORDER",
          "order of the samples: random (default) or listed (sorted by key)",
          read_into(settings.order, read_order)},
         {"seed",
          "N",
          "seed of the random order (default 0)",
          count_into<std::uint64_t>(settings.seed)},
         {"verify",
          "",
          "read every chunk back (default; --verify=false: do not)",
          switch_into(out.pack.verify)},
         {"rebuild-index",
          "",
          "only rebuild DST's index from its chunks",
          switch_into(out.rebuild_index)}}};
}

std::vector<FlagGroup> flags_of(PackCommand& out, SourceFlags& from) {
    return {
        chunk_flags(out),
        {"Run",
         {{"threads",
           "N",
           "chunks processed at a time, each in memory (default 4)",
           count_into<std::uint32_t>(out.pack.threads)},
          {"result-file",
           "FILE",
           "write the counts or the error to FILE as JSON",
           text_into(out.result_file)},
          {"quiet", "", "no progress on standard error", switch_into(out.quiet)},
          {"help", "", "print this text", switch_into(out.help)}}},
        destination_flags(out.origin),
        source_flags(from)};
}

bool is_tar(std::string_view place) {
    return place.ends_with(".tar") && !place.starts_with("s3://") && !domain::is_http_uri(place);
}

// The URI of a place: URIs stay unchanged, a path becomes an absolute file:// URI.
Result<std::string> uri_of(std::string_view place) {
    if (place.starts_with("s3://") || place.starts_with("file:///") || domain::is_http_uri(place)) {
        return std::string{place};
    }
    std::error_code failed;
    const auto path = std::filesystem::absolute(place, failed).lexically_normal();
    if (failed || place.empty()) {
        return fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not a place", place));
    }
    return "file://" + path.string();
}

Status take_places(const std::vector<std::string_view>& places, PackCommand& out) {
    const std::size_t least = out.rebuild_index ? 1 : 2;
    if (places.size() < least || (out.rebuild_index && places.size() > 1)) {
        return fail(
            ErrorCode::kInvalidArgument,
            out.rebuild_index ? "--rebuild-index takes DST alone" : "SRC and DST are needed");
    }
    STOKER_TRY(out.destination, uri_of(places.back()));
    const std::vector<std::string_view> sources{places.begin(), places.end() - 1};
    out.from_tar = !sources.empty() && std::ranges::all_of(sources, is_tar);
    if (out.from_tar) {
        out.sources.assign(sources.begin(), sources.end());
        return {};
    }
    if (sources.size() > 1) {
        return fail(ErrorCode::kInvalidArgument, "several SRC must all be .tar files");
    }
    for (const std::string_view source : sources) {
        STOKER_TRY(auto uri, uri_of(source));
        const bool is_s3 = uri.starts_with("s3://");
        if (domain::lies_in(
                {out.destination, is_s3 ? out.origin.endpoint : ""},
                {uri, is_s3 ? out.from.endpoint : ""})) {
            return fail(ErrorCode::kInvalidArgument, "DST lies inside SRC");
        }
        out.sources.push_back(std::move(uri));
    }
    return {};
}

}  // namespace

Result<PackCommand> parse_pack(const Arguments& arguments) {
    PackCommand out;
    SourceFlags from;
    STOKER_TRY(const auto places, parse_words(flags_of(out, from), arguments));
    if (out.help) {
        return out;
    }
    if (out.pack.threads == 0 || out.pack.threads > 64) {
        return fail(ErrorCode::kInvalidArgument, "--threads must be 1 to 64");
    }
    out.from = options_of(from, out.origin);
    STOKER_TRY_VOID(take_places(places, out));
    return out;
}

std::string pack_help() {
    PackCommand unused;
    SourceFlags from;
    return std::string{kUsage} + "\n" + flag_help(flags_of(unused, from));
}

}  // namespace stoker::cli
