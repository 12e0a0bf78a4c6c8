#include "cli/kubectl_stoker/job_advice.h"

#include <algorithm>
#include <cmath>

#include <cpprest/json.h>
#include <fmt/format.h>

#include "cli/advise/wrapped.h"
#include "cli/kubectl_stoker/curve_plot.h"
#include "cli/kubectl_stoker/table.h"
#include "common/base/saturating.h"
#include "common/domain/contract_table.h"
#include "operator/api/contract.h"
#include "operator/core/allocation/miss_curve.h"
#include "sidecar/advise/advise.h"

namespace stoker::cli {

namespace {

using control::MissCurve;
using web::json::value;

constexpr int kPoints = 10;

Bytes part(double share, Bytes whole) {
    return Bytes{
        static_cast<std::uint64_t>(std::llround(share * static_cast<double>(whole.count())))};
}

// Bytes of the job's datasets, each counted once; zero: not listed yet.
Bytes dataset_bytes(const JobAdviceFacts& facts) {
    Bytes total;
    if (facts.demand) {
        for (const control::DemandDataset& dataset : facts.demand->datasets) {
            total += dataset.total.value_or(Bytes::zero());
        }
        return total;
    }
    for (const control::JobDatasetStatus& dataset : facts.job.status.datasets) {
        total += bytes_of(dataset.total_bytes);
    }
    return total;
}

// Rates from the status, which counts in samples.
void read_status(const control::TrainingJob& job, JobAdvice& advice) {
    std::int64_t samples = 0;
    for (const control::JobDatasetStatus& dataset : job.status.datasets) {
        samples += std::max<std::int64_t>(dataset.samples, 0);
    }
    const control::ProfileStatus& profile = *job.status.profile;
    if (samples > 0) {
        const double mean =
            static_cast<double>(advice.epoch_bytes.count()) / static_cast<double>(samples);
        advice.profile.ingest_rate = static_cast<double>(profile.samples_per_second_needed) * mean;
        advice.profile.origin_rate = static_cast<double>(profile.samples_per_second_remote) * mean;
    }
    advice.source = "status";
    const std::int64_t nodes = std::max(job.spec.trainer.node_count, 1);
    advice.everything = advice.epoch_bytes * static_cast<std::uint64_t>(nodes);
}

// The part of the dataset that an epoch requests. Selective contracts leave some out.
double volume_of(Bytes total, const control::AccessPattern& access) {
    const bool is_selective =
        access.kind == control::AccessKind::kImportance || access.full_epochs > 0;
    return is_selective
               ? MissCurve::importance(total, access.beta, access.full_epochs).epoch_volume()
               : 1;
}

void read_demand(const JobAdviceFacts& facts, JobAdvice& advice) {
    advice.source = "operator";
    advice.profile.ingest_rate = facts.demand->rates->ingest;
    advice.profile.origin_rate = facts.demand->rates->origin;
    advice.everything = facts.explanation->dataset_bytes;
    advice.epoch_bytes = Bytes{};
    for (const control::DemandDataset& dataset : facts.demand->datasets) {
        const Bytes total = dataset.total.value_or(Bytes::zero());
        advice.epoch_bytes += part(volume_of(total, dataset.access), total);
    }
}

JobAdviceSize look_at(const JobAdviceFacts& facts, const JobAdvice& advice, double share) {
    JobAdviceSize size;
    size.size = part(share, advice.everything);
    size.share = share;
    if (advice.source == "operator") {
        const control::CurvePoint point = point_at(facts.explanation->curve, size.size);
        size.origin = part(point.fetched, advice.epoch_bytes);
        size.epoch_seconds = static_cast<double>(advice.epoch_bytes.count()) / point.rate;
        return size;
    }
    size.origin = part(MissCurve::exact(advice.everything)(size.size), advice.epoch_bytes);
    size.epoch_seconds =
        control::value_of({advice.profile, advice.epoch_bytes, advice.everything, size.size})
            .epoch_seconds_with;
    return size;
}

void choose(JobAdvice& advice) {
    const double without = advice.curve.front().epoch_seconds;
    const double best = advice.curve.back().epoch_seconds;
    advice.is_worth_it = without >= control::kComputeBoundBelow * best;
    if (!advice.is_worth_it) {
        advice.reason = fmt::format(
            "an epoch takes {:.0f} s without a cache and {:.0f} s with all data cached: the job "
            "computes longer than the origin needs. A cache would save traffic, not time",
            without,
            best);
        return;
    }
    while (without - advice.curve[advice.recommended].epoch_seconds <
           advise::kEnough * (without - best)) {
        ++advice.recommended;
    }
    advice.reason = fmt::format(
        "an epoch takes {:.0f} s without a cache, {:.0f} s with this one and {:.0f} s with all "
        "data "
        "cached",
        without,
        advice.curve[advice.recommended].epoch_seconds,
        best);
}

void compare_contracts(const JobAdviceFacts& facts, JobAdvice& advice) {
    const JobAdviceSize& size = advice.curve[advice.recommended];
    const auto& datasets = facts.job.spec.datasets;
    const std::string own{control::contract_member(
        datasets.empty() ? control::Contract::kExact : datasets.front().contract)};
    const auto add = [&](const char* name, const MissCurve& curve, const char* reason) {
        if (name == own) {
            advice.contracts.push_back({name, size.origin, "the job's contract now"});
            return;
        }
        const double volume = curve.epoch_volume() * curve(size.size);
        advice.contracts.push_back({name, part(volume, dataset_bytes(facts)), reason});
    };
    add("exact",
        MissCurve::exact(advice.everything),
        "if each epoch must read every sample once, in the program's order");
    add("windowed", MissCurve::exact(advice.everything), advise::kForSharedReads);
    add("importance",
        MissCurve::importance(
            advice.everything,
            domain::standard_of("importance", "beta"),
            1.0 / double{domain::standard_of("importance", "reuseFactor")}),
        advise::kForLowLosses);
    add("replicate",
        MissCurve::replicate(
            advice.everything,
            domain::standard_of("replicate", "replication"),
            domain::standard_of("replicate", "bias")),
        advise::kForRepeatedDraws);
}

const char* source_text(const JobAdvice& advice) {
    return advice.source == "operator" ? "operator's measurements"
                                       : "job's status, as if each epoch read every sample once";
}

}  // namespace

Result<JobAdvice> advise_job(const JobAdviceFacts& facts) {
    JobAdvice advice;
    advice.job = facts.job.meta.key();
    advice.epoch_bytes = dataset_bytes(facts);
    const bool is_planned = facts.demand && facts.demand->rates && facts.explanation &&
                            facts.explanation->curve.size() > 1;
    if (is_planned) {
        read_demand(facts, advice);
    } else if (facts.job.status.profile) {
        read_status(facts.job, advice);
    }
    const bool is_known = advice.epoch_bytes > Bytes::zero() && advice.profile.ingest_rate > 0 &&
                          advice.profile.origin_rate > 0;
    if (!is_known) {
        return fail(
            ErrorCode::kNotFound,
            fmt::format(
                "the operator has not measured how fast {} reads: a job is measured after some 30 "
                "s "
                "of training with a sidecar (any cache.mode but Off). Without one, record a trace "
                "and say --trace FILE",
                to_string(advice.job)));
    }
    for (int i = 0; i <= kPoints; ++i) {
        advice.curve.push_back(look_at(facts, advice, static_cast<double>(i) / kPoints));
    }
    choose(advice);
    compare_contracts(facts, advice);
    return advice;
}

std::string job_advice_text(const JobAdvice& advice) {
    using enum Table::Align;
    std::string text = fmt::format(
        "{} reads {} an epoch: {} if data were never late, {} from its origin\n\n",
        to_string(advice.job),
        to_string(advice.epoch_bytes),
        rate_text(advice.profile.ingest_rate),
        rate_text(advice.profile.origin_rate));
    Table sizes(
        {{" "}, {"CACHE", kRight}, {"SHARE", kRight}, {"ORIGIN", kRight}, {"EPOCH", kRight}});
    for (std::size_t i = 0; i < advice.curve.size(); ++i) {
        const JobAdviceSize& size = advice.curve[i];
        sizes.add(
            {advice.is_worth_it && i == advice.recommended ? ">" : " ",
             i == 0 ? "none" : to_string(size.size),
             fmt::format("{:.0f}%", 100 * size.share),
             to_string(size.origin),
             fmt::format("{:.1f}s", size.epoch_seconds)});
    }
    text += sizes.text();
    const std::string verdict = advice.is_worth_it
                                    ? fmt::format(
                                          "A cache of {} over all its nodes is worth it",
                                          to_string(advice.curve[advice.recommended].size))
                                    : "A cache saves no time here";
    text += '\n' + wrapped(fmt::format("{}: {}.", verdict, advice.reason), "");
    if (advice.is_worth_it) {
        Table contracts({{"CONTRACT"}, {"ORIGIN", kRight}, {"WHEN"}});
        for (const JobAdviceContract& contract : advice.contracts) {
            contracts.add({contract.name, to_string(contract.origin), contract.reason});
        }
        text += "\nBytes from the origin in an epoch with this size\n\n" + contracts.text("  ");
    }
    return text +
           fmt::format(
               "\nFrom the {}; predicted for epochs after the first.\n", source_text(advice));
}

std::string job_advice_json(const JobAdvice& advice) {
    value curve = value::array();
    for (const JobAdviceSize& size : advice.curve) {
        value item = value::object(true);
        item["cacheBytes"] = value::number(size.size.count());
        item["share"] = value::number(size.share);
        item["originBytesPerEpoch"] = value::number(size.origin.count());
        item["epochSeconds"] = value::number(size.epoch_seconds);
        curve[curve.size()] = item;
    }
    value contracts = value::array();
    for (const JobAdviceContract& contract : advice.contracts) {
        value item = value::object(true);
        item["name"] = value::string(contract.name);
        item["originBytesPerEpoch"] = value::number(contract.origin.count());
        item["reason"] = value::string(contract.reason);
        contracts[contracts.size()] = item;
    }
    value json = value::object(true);
    json["namespace"] = value::string(advice.job.ns);
    json["name"] = value::string(advice.job.name);
    json["source"] = value::string(advice.source);
    json["verdict"] = value::string(advice.is_worth_it ? "worthIt" : "computeBound");
    json["verdictReason"] = value::string(advice.reason);
    json["epochBytes"] = value::number(advice.epoch_bytes.count());
    json["ingestBytesPerSecond"] = value::number(advice.profile.ingest_rate);
    json["originBytesPerSecond"] = value::number(advice.profile.origin_rate);
    json["curve"] = curve;
    json["recommended"] = curve[advice.recommended];
    json["contracts"] = contracts;
    return json.serialize() + "\n";
}

}  // namespace stoker::cli
