#include <cpprest/json.h>

#include "cli/kubectl_stoker/why.h"

namespace stoker::cli {

namespace {

using control::JobAllocation;
using control::JobExplanation;
using web::json::value;

value bytes(Bytes count) {
    return value::number(count.count());
}

value allocation_json(const JobAllocation& allocation) {
    value json = value::object(true);
    json["pool"] = value::string(allocation.pool);
    json["wantedBytes"] = bytes(allocation.wanted);
    json["grantedBytes"] = bytes(allocation.granted);
    json["targetBytes"] = bytes(allocation.target);
    json["borrowedBytes"] = bytes(allocation.borrowed);
    json["reason"] = value::string(std::string{to_string(allocation.reason)});
    json["message"] = value::string(allocation.message);
    json["ingestBytesPerSecond"] = value::number(allocation.numbers.ingest_rate);
    json["originBytesPerSecond"] = value::number(allocation.numbers.origin_rate);
    json["bytesPerSecondWithoutCache"] = value::number(allocation.numbers.rate_without_cache);
    json["bytesPerSecond"] = value::number(allocation.numbers.rate);
    json["marginalPerGib"] = value::number(allocation.numbers.marginal_per_gib);
    json["thresholdPerGib"] = value::number(allocation.numbers.threshold_per_gib);
    return json;
}

value curve_json(const JobExplanation& explanation) {
    value list = value::array();
    for (const control::CurvePoint& point : explanation.curve) {
        value item = value::object(true);
        item["cachedBytes"] = bytes(point.cached);
        item["bytesPerSecond"] = value::number(point.rate);
        list[list.size()] = item;
    }
    return list;
}

value contenders_json(const JobExplanation& explanation) {
    value list = value::array();
    for (const control::Contender& contender : explanation.contenders) {
        value item = value::object(true);
        item["namespace"] = value::string(contender.job.ns);
        item["name"] = value::string(contender.job.name);
        item["grantedBytes"] = bytes(contender.granted);
        item["wantedBytes"] = bytes(contender.wanted);
        item["lastPerGib"] = value::number(contender.last_per_gib);
        item["nextPerGib"] = value::number(contender.next_per_gib);
        list[list.size()] = item;
    }
    return list;
}

value remedies_json(const WhyFacts& facts) {
    value list = value::array();
    for (const control::Remedy& remedy : facts.explanation->remedies) {
        value item = value::object(true);
        item["change"] = value::string(describe(remedy.change, facts.view));
        item["after"] = allocation_json(remedy.after);
        list[list.size()] = item;
    }
    return list;
}

// The job as JSON from its status alone, when there is no explanation.
value status_json(const control::TrainingJob& job) {
    value json = value::object(true);
    if (job.status.cache) {
        json["pool"] = value::string(job.status.cache->pool);
        json["wantedBytes"] = value::number(job.status.cache->wanted_bytes);
        json["grantedBytes"] = value::number(job.status.cache->allocated_bytes);
        json["borrowedBytes"] = value::number(job.status.cache->borrowed_bytes);
    }
    if (const auto* why = control::find_condition(job.status.conditions, "CacheAllocated")) {
        json["reason"] = value::string(why->reason);
        json["message"] = value::string(why->message);
    }
    return json;
}

}  // namespace

std::string why_json(const WhyFacts& facts) {
    value json = value::object(true);
    json["namespace"] = value::string(facts.job.meta.ns);
    json["name"] = value::string(facts.job.meta.name);
    json["source"] = value::string(facts.explanation ? "operator" : "status");
    if (facts.explanation) {
        json["ageSeconds"] = value::number(std::chrono::duration<double>(facts.age).count());
        json["operatorVersion"] = value::string(facts.version);
        json["allocation"] = allocation_json(facts.explanation->allocation);
        json["curve"] = curve_json(*facts.explanation);
        json["contenders"] = contenders_json(*facts.explanation);
        json["remedies"] = remedies_json(facts);
    } else {
        json["allocation"] = status_json(facts.job);
    }
    const auto* origin = control::find_condition(facts.job.status.conditions, "OriginUnchanged");
    if (origin != nullptr && origin->status == control::ConditionStatus::kFalse) {
        json["origin"]["reason"] = value::string(origin->reason);
        json["origin"]["message"] = value::string(origin->message);
    }
    return json.serialize() + "\n";
}

}  // namespace stoker::cli
