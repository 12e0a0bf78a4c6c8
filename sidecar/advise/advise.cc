#include "sidecar/advise/advise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sidecar/advise/replay.h"

namespace stoker::advise {

namespace {

constexpr int kCurvePoints = 10;
constexpr double kComputeBoundBelow = 1.05;  // from operator/core/profile/job_profile.h
constexpr double kBetterEviction = 0.95;     // LRU must read less than this of never-evict's bytes

Status check(const Question& question) {
    const auto refuse = [](const char* what) { return fail(ErrorCode::kInvalidArgument, what); };
    if (question.workers == 0 || question.workers > 4096) {
        return refuse("a rank must have 1 to 4096 workers");
    }
    if (question.origin && question.origin->bytes_per_second == Bytes{}) {
        return refuse("the origin's bandwidth must be above 0");
    }
    if (question.batch == 0 || question.batch > 65536) {
        return refuse("a batch must have 1 to 65536 samples");
    }
    if (question.compute_rate && !(*question.compute_rate > 0 && *question.compute_rate < 1e12)) {
        return refuse("the compute rate must be above 0 samples per second");
    }
    if (question.cache.value_or(Bytes{}).is_unlimited() || question.window.is_unlimited()) {
        return refuse("cache and window must be numbers of bytes");
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

// Seconds per epoch after the first one; seconds of the whole run if it has no such epoch.
double time_of(const Run& run) {
    return run.epoch_seconds > 0 ? run.epoch_seconds : run.seconds;
}

double cost(const Advice& advice, const Run& run) {
    return advice.is_by_time() ? time_of(run) : static_cast<double>(run.origin_bytes.count());
}

// What a run saves beyond a sidecar that only reads ahead.
double saved(const Advice& advice, const Run& run) {
    return cost(advice, advice.curve.front().keep) - cost(advice, run);
}

// The result for this cache size under the recommended eviction policy.
const Run& best(const Advice& advice, const SizeResult& size) {
    return advice.eviction == "LRU" ? size.lru : size.keep;
}

void choose_eviction(Advice& advice) {
    const auto better = std::ranges::count_if(advice.curve, [](const SizeResult& size) {
        return ratio(size.lru.origin_bytes, size.keep.origin_bytes) < kBetterEviction;
    });
    const bool is_lru = better > kCurvePoints / 2;
    advice.eviction = is_lru ? "LRU" : "Auto";
}

double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

void explain_eviction(Advice& advice) {
    const double lru = static_cast<double>(advice.recommended.lru.origin_bytes.count());
    const double keep = static_cast<double>(advice.recommended.keep.origin_bytes.count());
    const double more = percent(lru - keep, keep);
    advice.eviction_reason =
        advice.eviction == "LRU"
            ? "what was read lately is read again, and changes in the course of the run"
        : std::abs(more) < 0.5
            ? "LRU would read as much"
            : fmt::format("LRU would read {:.0f} % {}", std::abs(more), more > 0 ? "more" : "less");
}

// Compares the three cases on which a verdict depends.
std::string compared(const Advice& advice) {
    const auto amount = [&advice](const Run& run) {
        return advice.is_by_time() ? fmt::format("{:.1f} s", time_of(run))
                                   : to_string(run.origin_bytes);
    };
    return fmt::format(
        "{} {} without a sidecar, {} with one that only reads ahead, and {} with the whole dataset "
        "cached",
        !advice.is_by_time()               ? "the origin sends"
        : advice.without.epoch_seconds > 0 ? "an epoch takes"
                                           : "the run takes",
        amount(advice.without),
        amount(advice.curve.front().keep),
        amount(best(advice, advice.curve.back())));
}

Verdict verdict_on(const Advice& advice, double first_batch_seconds) {
    if (advice.shape.pattern == Pattern::kOnePass) {
        return Verdict::kOnePass;
    }
    const Run& alone = advice.curve.front().keep;
    const Run& whole = best(advice, advice.curve.back());
    // Allows for the wait for an epoch's first batch, which must not decide about a short trace.
    const double enough = kComputeBoundBelow * time_of(whole) + first_batch_seconds;
    if (advice.is_by_time() && time_of(advice.without) < enough) {
        return Verdict::kComputeBound;
    }
    const double enough_alone =
        advice.is_by_time() ? enough : kComputeBoundBelow * cost(advice, whole);
    if (cost(advice, alone) < enough_alone) {
        return Verdict::kLookAhead;
    }
    const bool is_hidden = std::min(time_of(advice.without), time_of(alone)) < enough;
    return advice.has_times && advice.rate_is_bound && is_hidden ? Verdict::kTimeUnknown
                                                                 : Verdict::kWorthIt;
}

void judge(const Replay& replay, Advice& advice) {
    const Shape& shape = advice.shape;
    advice.verdict = verdict_on(advice, replay.first_batch_seconds());
    switch (advice.verdict) {
        case Verdict::kOnePass:
            advice.verdict_reason = fmt::format(
                "{} of {} reads repeat an earlier one. If the program makes more passes, record "
                "two",
                shape.reads - shape.samples,
                shape.reads);
            break;
        case Verdict::kComputeBound:
            advice.verdict_reason = compared(advice) +
                                    ": the origin is fast enough. A cache would save traffic, not "
                                    "time";
            break;
        case Verdict::kLookAhead:
            advice.verdict_reason = compared(advice);
            break;
        default:
            advice.verdict_reason = fmt::format(
                "{:.0f} % of the reads repeat an earlier one",
                percent(
                    static_cast<double>(shape.reads - shape.samples),
                    static_cast<double>(shape.reads)));
    }
}

void choose_size(Advice& advice) {
    if (!advice.recommends_cache()) {
        advice.size_reason = "see above";
        if (advice.verdict == Verdict::kLookAhead) {
            advice.recommended = advice.curve.front();
        } else {
            advice.recommended.keep = advice.recommended.lru = advice.without;
        }
        return;
    }
    const double most = saved(advice, best(advice, advice.curve.back()));
    const auto enough = std::ranges::find_if(advice.curve, [&](const SizeResult& size) {
        return saved(advice, best(advice, size)) >= kEnough * most;
    });
    advice.recommended = enough == advice.curve.end() ? advice.curve.back() : *enough;
    const char* unit = advice.is_by_time() ? "time" : "traffic";
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
                            : kForSharedReads;
    } else if (name == "importance") {
        result.applies = once && !shape.same_order;
        result.reason = result.applies ? kForLowLosses
                        : once         ? "the fixed order suggests that the order matters"
                                       : "needs epochs that read each sample once";
    } else {
        result.applies = again || (once && !shape.same_order);
        result.reason = again            ? "if the program draws by loss"
                        : result.applies ? kForRepeatedDraws
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
    if (!advice.recommends_cache()) {
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
    for (int i = 0; i <= kCurvePoints; ++i) {
        const Bytes size = part(static_cast<double>(i) / kCurvePoints, replay.dataset_on_node());
        STOKER_TRY(SizeResult result, look_at(replay, size));
        advice.curve.push_back(result);
    }
    if (question.cache) {
        STOKER_TRY(advice.asked, look_at(replay, *question.cache));
    }
    choose_eviction(advice);
    judge(replay, advice);
    choose_size(advice);
    explain_eviction(advice);
    STOKER_TRY_VOID(compare_contracts(replay, advice));
    return advice;
}

}  // namespace stoker::advise
