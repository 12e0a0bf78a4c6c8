#include "cli/stoker/clairvoyant_options.h"

#include <fmt/core.h>

#include "common/base/split.h"
#include "common/config/config_reader.h"

namespace stoker::cli {

namespace {

using simulate::ClairvoyantSpec;
using simulate::CurvePoints;
using simulate::TierSpec;

Result<double> parse_rate(std::string_view text) {
    STOKER_TRY(const Bytes bytes, config::parse_bytes(text));
    return static_cast<double>(bytes.count());
}

// Parses "200Mi" (the same for any number of threads) or "1:330Mi/2:730Mi".
Result<CurvePoints> parse_curve(std::string_view text) {
    CurvePoints points;
    for (const std::string_view part : split(text, '/')) {
        const std::size_t colon = part.find(':');
        sidecar::BandwidthCurve::Point point{1, 0};
        if (colon != std::string_view::npos) {
            STOKER_TRY(point.users, parse_number("users", part.substr(0, colon)));
        }
        STOKER_TRY(
            point.bytes_per_second,
            parse_rate(colon == std::string_view::npos ? part : part.substr(colon + 1)));
        points.push_back(point);
    }
    return points;
}

Status set_part(TierSpec& tier, std::string_view name, std::string_view value) {
    if (name == "share") {
        STOKER_TRY(tier.share, parse_number(name, value));
    } else if (name == "threads") {
        STOKER_TRY(tier.threads, parse_number(name, value));
    } else if (name == "read") {
        STOKER_TRY(tier.read, parse_curve(value));
    } else if (name == "write") {
        STOKER_TRY(tier.write, parse_curve(value));
    } else {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("a tier has no '{}'; it has: share, read, write, threads", name));
    }
    return {};
}

// Parses "share=0.1,read=1:330Mi/2:730Mi,write=1Gi,threads=2".
Result<TierSpec> parse_tier(std::string_view text, TierSpec tier) {
    const auto set = [&tier](std::string_view name, std::string_view value) {
        return set_part(tier, name, value);
    };
    STOKER_TRY_VOID(each_pair(text, "share=0.1,read=2Gi", set));
    return tier;
}

Result<simulate::Placement> parse_placement(std::string_view text) {
    if (text != "own" && text != "pooled") {
        return fail(ErrorCode::kInvalidArgument, "must be own or pooled");
    }
    return text == "own" ? simulate::Placement::kOwn : simulate::Placement::kPooled;
}

std::vector<Flag> own_flags(ClairvoyantSpec& spec) {
    const auto tier = [](std::string_view text) { return parse_tier(text, {}); };
    const auto staging = [&spec](std::string_view text) { return parse_tier(text, spec.staging); };
    return {
        {"world", "N", "ranks, one a node (4)", count_into(spec.world)},
        {"placement",
         "own|pooled",
         "each rank caches the samples it reads most, or each sample has one owner (own)",
         read_into(spec.placement, parse_placement)},
        {"threshold",
         "N",
         "report how many samples a rank reads more often than this (10)",
         count_into(spec.threshold)},
        {"tier",
         "K=V,...",
         "a cache tier: share= of the dataset, read= and write= in bytes/s, threads= (2); fastest "
         "first, "
         "repeat for more (one, with --cache-share)",
         read_into(spec.tiers, tier)},
        {"staging",
         "K=V,...",
         "the buffer that the trainer reads: read=, write= (5e9), threads= (4)",
         read_into(spec.staging, staging)},
        {"origin-curve",
         "CURVE",
         "origin's bytes/s by number of clients, 1:330Mi/2:730Mi (default: always "
         "--origin-bandwidth)",
         read_into(spec.origin, parse_curve)},
        {"peer-bandwidth",
         "BYTES",
         "bytes/s between two nodes (1e9)",
         read_into(spec.peer, parse_rate)},
        {"preprocess-bandwidth",
         "BYTES",
         "bytes/s that one thread decodes (2e8)",
         read_into(spec.preprocess, parse_rate)}};
}

}  // namespace

FlagGroup clairvoyant_flags(ClairvoyantSpec& spec, std::string& given) {
    FlagGroup group{
        "One job of several ranks that knows its future (--policy nopfs)", own_flags(spec)};
    for (Flag& flag : group.flags) {
        flag.apply = [&given, name = flag.name, apply = flag.apply](std::string_view text) {
            given = name;
            return apply(text);
        };
    }
    return group;
}

}  // namespace stoker::cli
