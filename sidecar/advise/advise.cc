#include "sidecar/advise/advise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sidecar/advise/replay.h"

namespace stoker::advise {

namespace {

constexpr int kCurvePoints = 10;
constexpr double kEnough = 0.95;             // of the savings of the whole dataset
constexpr double kComputeBoundBelow = 1.05;  // as operator/core/profile/job_profile.h
constexpr double kBetterEviction = 0.95;     // LRU must read less than this of never-evict's bytes

Status check(const Question& question) {
    const auto refuse = [](const char* what) { return fail(ErrorCode::kInvalidArgument, what); };
    if (question.workers == 0 || question.workers > 4096) {
        return refuse("1 to 4096 workers read for a rank");
    }
    if (question.origin && question.origin->bytes_per_second == Bytes{}) {
        return refuse("the origin's bandwidth must be above 0");
    }
    if (question.batch == 0 || question.batch > 65536) {
        return refuse("a batch holds 1 to 65536 samples");
    }
    if (question.compute_rate && !(*question.compute_rate > 0 && *question.compute_rate < 1e12)) {
        return refuse("the compute rate must be above 0 samples per second");
    }
    if (question.cache.value_or(Bytes{}).is_unlimited() || question.window.is_unlimited()) {
        return refuse("cache and window need a number of bytes");
    }
    return {};
}

Bytes part(double share, Bytes whole) {
    return Bytes{
        static_cast<std::uint64_t>(std::llround(share * static_cast<double>(whole.count())))};
}

double ratio(Bytes part, Bytes whole) {
    return whole > Bytes{} ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
                           : 0;
}

Result<SizeResult> look_at(const Replay& replay, Bytes size) {
    SizeResult result{size, ratio(size, replay.dataset_on_node()), {}, {}};
    STOKER_TRY(result.keep, replay.with_cache(size, ""));
    STOKER_TRY(result.lru, replay.with_cache(size, "lru"));
    return result;
}

// What is saved by a size: seconds if the user knows the origin's speed, else bytes.
double saved(const Advice& advice, const Run& run) {
    if (advice.has_times) {
        return advice.without.seconds - run.seconds;
    }
    return static_cast<double>((advice.without.origin_bytes - run.origin_bytes).count());
}

// The run under the eviction that is recommended.
const Run& best(const Advice& advice, const SizeResult& size) {
    return advice.eviction == "LRU" ? size.lru : size.keep;
}

void choose_eviction(Advice& advice) {
    const auto better = std::ranges::count_if(advice.curve, [](const SizeResult& size) {
        return ratio(size.lru.origin_bytes, size.keep.origin_bytes) < kBetterEviction;
    });
    const bool is_lru = better > kCurvePoints / 2;
    advice.eviction = is_lru ? "LRU" : "Auto";
    advice.eviction_reason =
        is_lru ? "what was read lately is read again, and changes in the course of the run"
               : "LRU would not read less";
}

double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

void judge(Advice& advice) {
    const Shape& shape = advice.shape;
    const double whole = best(advice, advice.curve.back()).seconds;
    if (shape.pattern == Pattern::kOnePass) {
        advice.verdict = Verdict::kOnePass;
        advice.verdict_reason = fmt::format(
            "{} of {} reads repeat an earlier one. A cache pays only if later runs read the same "
            "samples",
            shape.reads - shape.samples,
            shape.reads);
    } else if (advice.has_times && advice.without.seconds < kComputeBoundBelow * whole) {
        advice.verdict = Verdict::kComputeBound;
        advice.verdict_reason = fmt::format(
            "the run takes {:.1f} s without a cache and {:.1f} s with the whole dataset cached: "
            "the origin is fast enough. A cache would save traffic, not time",
            advice.without.seconds,
            whole);
    } else {
        advice.verdict_reason = fmt::format(
            "{:.0f} % of the reads repeat an earlier one",
            percent(
                static_cast<double>(shape.reads - shape.samples),
                static_cast<double>(shape.reads)));
    }
}

void choose_size(Advice& advice) {
    if (advice.verdict != Verdict::kWorthIt) {
        advice.recommended.keep = advice.recommended.lru = advice.without;
        advice.size_reason = "see above";
        return;
    }
    const double most = saved(advice, best(advice, advice.curve.back()));
    const auto enough = std::ranges::find_if(advice.curve, [&](const SizeResult& size) {
        return saved(advice, best(advice, size)) >= kEnough * most;
    });
    advice.recommended = enough == advice.curve.end() ? advice.curve.back() : *enough;
    const char* unit = advice.has_times ? "time" : "traffic";
    advice.size_reason =
        advice.recommended.size == advice.curve.back().size
            ? fmt::format("every tenth of the dataset, up to the last, saves more {}", unit)
            : fmt::format(
                  "it saves {:.0f} % of the {} that the whole dataset would save",
                  percent(saved(advice, best(advice, advice.recommended)), most),
                  unit);
}

ContractResult contract_of(const Shape& shape, std::string_view name) {
    ContractResult result{name, false, "", {}};
    const bool once = shape.pattern == Pattern::kEachOnce;
    const bool again =
        shape.pattern == Pattern::kWithReplacement || shape.pattern == Pattern::kSkewed;
    if (name == "windowed") {
        result.applies = once && shape.each_reads_all;
        result.reason = !once ? "needs epochs that read each sample once"
                        : result.applies
                            ? "every reader reads everything, so one fetch can serve all of them"
                            : "saves only if several jobs read the dataset at the same time";
    } else if (name == "importance") {
        result.applies = once && !shape.same_order;
        result.reason = result.applies
                            ? "if the training may read samples with a low loss less often"
                        : once ? "the fixed order suggests that the order matters"
                               : "needs epochs that read each sample once";
    } else {
        result.applies = again || (once && !shape.same_order);
        result.reason = again            ? "if the program draws by loss"
                        : result.applies ? "if the training may draw samples with replacement"
                                         : "the fixed order suggests that the order matters";
    }
    return result;
}

Status compare_contracts(const Replay& replay, Advice& advice) {
    advice.contract = "exact";
    const SizeResult& size = advice.asked ? *advice.asked : advice.recommended;
    advice.contracts_size = size.size;
    ContractResult exact{"exact", true, "the program's own stream", {}};
    exact.origin_bytes = best(advice, size).origin_bytes;
    advice.contracts.push_back(std::move(exact));
    if (advice.verdict != Verdict::kWorthIt) {
        return {};
    }
    for (const std::string_view name : {"windowed", "importance", "replicate"}) {
        ContractResult result = contract_of(advice.shape, name);
        if (result.applies) {
            STOKER_TRY(result.origin_bytes, replay.under_contract(size.size, name));
        }
        const bool is_free = name == "windowed";  // each sample is still read once an epoch
        if (is_free && result.applies &&
            ratio(*result.origin_bytes, *advice.contracts[0].origin_bytes) < kBetterEviction) {
            advice.contract = name;
        }
        advice.contracts.push_back(std::move(result));
    }
    return {};
}

}  // namespace

Result<Advice> advise(const Trace& trace, const Question& question) {
    STOKER_TRY_VOID(check(question));
    Advice advice;
    advice.shape = describe(trace);
    advice.refused = trace.refused;
    advice.partial_reads = trace.partial_reads;
    advice.is_access_log = trace.is_access_log;
    advice.has_times = question.origin.has_value();
    advice.rate_is_bound = !question.compute_rate;
    const Replay replay{trace, advice.shape, question};
    advice.compute_rate = replay.compute_rate();
    STOKER_TRY(advice.without, replay.without_cache());
    for (int i = 1; i <= kCurvePoints; ++i) {
        const Bytes size = part(static_cast<double>(i) / kCurvePoints, replay.dataset_on_node());
        STOKER_TRY(SizeResult result, look_at(replay, size));
        advice.curve.push_back(result);
    }
    if (question.cache) {
        STOKER_TRY(advice.asked, look_at(replay, *question.cache));
    }
    choose_eviction(advice);
    judge(advice);
    choose_size(advice);
    STOKER_TRY_VOID(compare_contracts(replay, advice));
    return advice;
}

}  // namespace stoker::advise
