#include <array>

#include <cpprest/json.h>

#include "cli/advise/advise_report.h"

namespace stoker::cli {

namespace {

using advise::Advice;
using web::json::value;

constexpr std::array kPatterns{"onePass", "eachOnce", "withReplacement", "skewed"};
constexpr std::array kVerdicts{
    "worthIt", "onePass", "computeBound", "lookAheadIsEnough", "timeUnknown"};

value text(std::string_view words) {
    return value::string(std::string{words});
}

value trace_json(const Advice& advice) {
    const advise::Shape& shape = advice.shape;
    value json = value::object(true);
    json["reads"] = value::number(shape.reads);
    json["readBytes"] = value::number(shape.read_bytes.count());
    json["samples"] = value::number(shape.samples);
    json["datasetBytes"] = value::number(shape.dataset_bytes.count());
    json["readers"] = value::number(shape.readers);
    json["pattern"] = text(kPatterns.at(static_cast<std::size_t>(shape.pattern)));
    json["sameOrder"] = value::boolean(shape.same_order);
    json["eachReadsAll"] = value::boolean(shape.each_reads_all);
    json["epochs"] = value::number(shape.epochs);
    json["hottestShare"] = value::number(shape.hottest_share);
    json["seconds"] = value::number(shape.seconds);
    json["refusedLines"] = value::number(advice.refused.count);
    return json;
}

value run_json(const Advice& advice, const advise::Run& run) {
    value json = value::object(true);
    json["originBytes"] = value::number(run.origin_bytes.count());
    json["hitRatio"] = value::number(run.hit_ratio);
    if (advice.has_times) {
        json["seconds"] = value::number(run.seconds);
        json["epochSeconds"] =
            run.epoch_seconds > 0 ? value::number(run.epoch_seconds) : value::null();
    }
    return json;
}

value size_json(const Advice& advice, const advise::SizeResult& size) {
    value json = value::object(true);
    json["cacheBytes"] = value::number(size.size.count());
    json["share"] = value::number(size.share);
    json["neverEvict"] = run_json(advice, size.keep);
    json["lru"] = run_json(advice, size.lru);
    return json;
}

value contracts_json(const Advice& advice) {
    value list = value::array();
    for (const advise::ContractResult& contract : advice.contracts) {
        value item = value::object(true);
        item["name"] = text(contract.name);
        item["applies"] = value::boolean(contract.applies);
        item["reason"] = text(contract.reason);
        item["originBytes"] =
            contract.origin_bytes ? value::number(contract.origin_bytes->count()) : value::null();
        list[list.size()] = item;
    }
    return list;
}

}  // namespace

std::string advice_json(const Advice& advice) {
    value curve = value::array();
    for (const advise::SizeResult& size : advice.curve) {
        curve[curve.size()] = size_json(advice, size);
    }
    value json = value::object(true);
    json["trace"] = trace_json(advice);
    json["verdict"] = text(kVerdicts.at(static_cast<std::size_t>(advice.verdict)));
    json["verdictReason"] = text(advice.verdict_reason);
    json["withoutCache"] = run_json(advice, advice.without);
    json["curve"] = curve;
    json["asked"] = advice.asked ? size_json(advice, *advice.asked) : value::null();
    json["recommended"] = size_json(advice, advice.recommended);
    json["recommended"]["reason"] = text(advice.size_reason);
    json["recommended"]["evictionPolicy"] = text(advice.eviction);
    json["recommended"]["contract"] = text(advice.contract);
    json["contractsCacheBytes"] = value::number(advice.contracts_size.count());
    json["contracts"] = contracts_json(advice);
    if (advice.has_times) {
        json["computeRate"] = value::number(advice.compute_rate);
        json["computeRateIsBound"] = value::boolean(advice.rate_is_bound);
    }
    return json.serialize() + "\n";
}

}  // namespace stoker::cli
