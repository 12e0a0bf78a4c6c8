#include <fmt/core.h>

#include "cli/advise/advise_report.h"
#include "cli/advise/wrapped.h"

namespace stoker::cli {

namespace {

using advise::Advice;
using advise::Pattern;
using advise::Shape;
using advise::SizeResult;

std::string plural(std::uint64_t count, const char* word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string access(const Shape& shape) {
    const char* passes = shape.same_order ? "always in the same order" : "shuffled";
    switch (shape.pattern) {
        case Pattern::kOnePass:
            return "one pass: hardly any sample is read twice";
        case Pattern::kEachOnce:
            return shape.each_reads_all
                       ? fmt::format(
                             "{:.1f} epochs of each reader, with each sample once, {}",
                             shape.epochs,
                             passes)
                       : fmt::format(
                             "{:.1f} epochs with each sample once, {}", shape.epochs, passes);
        case Pattern::kWithReplacement:
            return fmt::format(
                "draws with replacement, all samples alike ({:.1f} reads per sample)",
                static_cast<double>(shape.reads) / static_cast<double>(shape.samples));
        case Pattern::kSkewed:
            break;
    }
    return fmt::format(
        "skewed: a tenth of the samples gets {:.0f} % of the reads", 100 * shape.hottest_share);
}

std::string head(const Advice& advice) {
    const Shape& shape = advice.shape;
    std::string text = fmt::format(
        "Trace: {} of {} ({}) by {}",
        plural(shape.reads, "read"),
        plural(shape.samples, "sample"),
        to_string(shape.dataset_bytes),
        plural(shape.readers, "reader"));
    text += shape.seconds > 0
                ? fmt::format(
                      ", {:.0f} samples/s in {:.1f} s\n", shape.reads_per_second(), shape.seconds)
                : "\n";
    text += fmt::format("Access: {}\n", access(shape));
    text += fmt::format(
        "Origin: {} without a cache; at least {}, each sample once\n",
        to_string(advice.without.origin_bytes),
        to_string(shape.dataset_bytes));
    if (advice.refused.count > 0) {
        text += fmt::format(
            "Note: {} left out; line {}: {}\n",
            plural(advice.refused.count, "line"),
            advice.refused.first_line,
            advice.refused.first_reason);
    }
    if (advice.is_access_log && advice.partial_reads > 0) {
        text += "Note: the log has no ranges; parts of objects count as read from first to last\n";
    }
    return text;
}

std::string run_cells(const Advice& advice, const advise::Run& run) {
    if (!advice.has_times) {
        return "";
    }
    return fmt::format("{:>9.1f}s", run.seconds) +
           (run.epoch_seconds > 0 ? fmt::format("{:>9.1f}s", run.epoch_seconds) : "");
}

std::string row(const Advice& advice, const SizeResult& size, const char* mark) {
    return fmt::format(
               "{} {:>9} {:>6.0f}% {:>9} {:>6.1f}% {:>9} {:>6.1f}%",
               mark,
               to_string(size.size),
               100 * size.share,
               to_string(size.keep.origin_bytes),
               100 * size.keep.hit_ratio,
               to_string(size.lru.origin_bytes),
               100 * size.lru.hit_ratio) +
           run_cells(advice, size.keep) + "\n";
}

std::string table(const Advice& advice) {
    std::string text = fmt::format(
        "\n  {:>9} {:>7} {:>9} {:>7} {:>9} {:>7}",
        "CACHE",
        "SHARE",
        "ORIGIN",
        "HITS",
        "LRU",
        "HITS");
    const bool has_epochs = advice.without.epoch_seconds > 0;
    if (advice.has_times) {
        text += fmt::format("{:>10}", "RUN") + (has_epochs ? fmt::format("{:>10}", "EPOCH") : "");
    }
    text += '\n';
    const std::string none = to_string(advice.without.origin_bytes);
    text += fmt::format(
        "  {:>9} {:>6}% {:>9} {:>6.1f}% {:>9} {:>6.1f}%", "none", 0, none, 0.0, none, 0.0);
    text += run_cells(advice, advice.without) + '\n';
    for (const SizeResult& size : advice.curve) {
        const bool is_recommended =
            size.size == advice.recommended.size &&
            (advice.recommends_cache() || advice.verdict == advise::Verdict::kLookAhead);
        text += row(advice, size, is_recommended ? ">" : " ");
    }
    if (advice.asked) {
        text += row(advice, *advice.asked, "?");
    }
    return text + "\nnone: without a sidecar. 0B: a sidecar that only reads ahead.\n";
}

std::string times_note(const Advice& advice) {
    if (!advice.has_times) {
        return "To get times, add --origin-bandwidth and --origin-latency.\n";
    }
    return advice.rate_is_bound
               ? fmt::format(
                     "Times: for a program that computes {:.0f} samples/s, as in the trace. If "
                     "it waited for\ndata there, it can be faster: say --compute-rate.\n",
                     advice.compute_rate)
               : fmt::format(
                     "Times: for a program that computes {:.0f} samples/s.\n", advice.compute_rate);
}

std::string contracts(const Advice& advice) {
    std::string text =
        fmt::format("\nWith {}:\n  CONTRACT      ORIGIN  WHEN\n", to_string(advice.contracts_size));
    for (const advise::ContractResult& contract : advice.contracts) {
        text += fmt::format(
            "{} {:10} {:>9}  {}\n",
            contract.name == advice.contract ? ">" : " ",
            contract.name,
            contract.origin_bytes ? to_string(*contract.origin_bytes) : "-",
            contract.reason);
    }
    return text;
}

const char* verdict(const Advice& advice) {
    switch (advice.verdict) {
        case advise::Verdict::kOnePass:
            return "A cache is worth nothing to one pass";
        case advise::Verdict::kComputeBound:
            return "A cache saves no time here";
        case advise::Verdict::kLookAhead:
            return "The sidecar's look-ahead alone is enough";
        case advise::Verdict::kTimeUnknown:
            return "A cache saves traffic; without --compute-rate it is not known whether it saves "
                   "time";
        case advise::Verdict::kWorthIt:
            break;
    }
    return "A cache is worth it";
}

std::string recommendation(const Advice& advice) {
    const std::string first =
        '\n' + wrapped(fmt::format("{}: {}.", verdict(advice), advice.verdict_reason), "");
    if (!advice.recommends_cache()) {
        return first;
    }
    const SizeResult& size = advice.recommended;
    const advise::Run& run = advice.eviction == "LRU" ? size.lru : size.keep;
    return first +
           fmt::format(
               "  size      {} over all nodes: {}\n"
               "  saves     {} of {} from the origin\n"
               "  eviction  {}: {}\n"
               "  contract  {}\n",
               to_string(size.size),
               advice.size_reason,
               to_string(advice.without.origin_bytes - run.origin_bytes),
               to_string(advice.without.origin_bytes),
               advice.eviction,
               advice.eviction_reason,
               advice.contract == "exact"
                   ? "exact: the program's own stream; the others change it"
                   : fmt::format("{}: each sample is still read once an epoch", advice.contract));
}

}  // namespace

std::string advice_text(const Advice& advice) {
    return head(advice) + table(advice) + times_note(advice) + recommendation(advice) +
           (advice.contracts.size() > 1 ? contracts(advice) : "");
}

}  // namespace stoker::cli
