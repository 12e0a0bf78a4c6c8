#include "cli/kubectl_stoker/report.h"

#include <array>

#include <fmt/format.h>

#include "cli/kubectl_stoker/curve_plot.h"
#include "cli/kubectl_stoker/html.h"
#include "cli/kubectl_stoker/report_plots.h"
#include "common/base/saturating.h"
#include "operator/api/time_format.h"

namespace stoker::cli {

namespace {

using control::TrainingJob;

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;"
    "color:#1b1f24}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.3em .7em .3em 0;border-bottom:1px solid #d8dee4;"
    "vertical-align:top;overflow-wrap:anywhere}.r{text-align:right}"
    "svg{max-width:100%;font:13px system-ui,sans-serif}"
    ".note{color:#57606a}";

std::string paragraph(const std::string& text, const char* css = "") {
    return fmt::format("<p class=\"{}\">{}</p>\n", css, escaped(text));
}

std::string section(const char* title, const std::string& content) {
    return content.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", title, content);
}

std::string state_of(const TrainingJob& job) {
    const auto* finished = control::find_condition(job.status.conditions, "Finished");
    if (finished == nullptr) {
        return "not started";
    }
    return finished->reason;
}

std::string cache_summary(const TrainingJob& job) {
    const control::TrainingJobStatus& status = job.status;
    if (!status.cache) {
        return paragraph("It has no cache bytes.");
    }
    const control::CacheStatus& cache = *status.cache;
    std::string text = fmt::format(
        "It may keep {} of the {} that it wants in pool {}, and has {} on its nodes.",
        to_string(bytes_of(cache.allocated_bytes)),
        to_string(bytes_of(cache.wanted_bytes)),
        cache.pool,
        to_string(bytes_of(cache.used_bytes)));
    if (!status.columns.hit.empty()) {
        text += fmt::format(" {} of the bytes that it read were on the node.", status.columns.hit);
    }
    std::string html = paragraph(text);
    if (cache.benefit && !cache.benefit->seconds_saved_per_epoch.empty()) {
        html += paragraph(fmt::format(
            "The cache saves {} s of every epoch ({}).{}",
            cache.benefit->seconds_saved_per_epoch,
            cache.benefit->method,
            cache.benefit->speedup.empty()
                ? ""
                : fmt::format(
                      " An epoch is {} times as fast as without.", cache.benefit->speedup)));
    }
    return html;
}

std::string summary(const TrainingJob& job) {
    const control::TrainingJobStatus& status = job.status;
    std::string text = fmt::format(
        "State: {}. {} node(s), attempt {}.",
        state_of(job),
        job.spec.trainer.node_count,
        status.attempt);
    if (status.start_time) {
        text += fmt::format(" Started at {}.", control::format_time(*status.start_time));
    }
    if (status.completion_time) {
        text += fmt::format(" Ended at {}.", control::format_time(*status.completion_time));
    }
    if (status.progress) {
        text += fmt::format(
            " Epoch {}, {} samples read.", status.progress->epoch, status.progress->samples_read);
    }
    return paragraph(text) + cache_summary(job);
}

// The reason for the grant, from the operator's explanation or else from the status.
std::string grant(const WhyFacts& why) {
    if (why.explanation) {
        const control::JobAllocation& allocation = why.explanation->allocation;
        return paragraph(fmt::format("{}: {}", to_string(allocation.reason), allocation.message));
    }
    const auto* allocated = control::find_condition(why.job.status.conditions, "CacheAllocated");
    return allocated == nullptr
               ? paragraph("Nothing was decided about its cache yet.")
               : paragraph(fmt::format("{}: {}", allocated->reason, allocated->message));
}

std::string remedies(const WhyFacts& why) {
    HtmlTable table{{"Change", "Grant", "Speed"}, {}, {1, 2}};
    if (why.explanation) {
        for (const control::Remedy& remedy : why.explanation->remedies) {
            table.rows.push_back(
                {describe(remedy.change, why.view),
                 to_string(remedy.after.granted),
                 rate_text(remedy.after.numbers.rate)});
        }
    }
    return html_of(table);
}

std::string contenders(const WhyFacts& why) {
    HtmlTable table{{"Job", "Has", "Wants", "Last GiB saves", "Next GiB saves"}, {}, {1, 2, 3, 4}};
    const auto worth = [](double rate) { return rate > 0 ? rate_text(rate) : "-"; };
    if (why.explanation) {
        for (const control::Contender& contender : why.explanation->contenders) {
            table.rows.push_back(
                {to_string(contender.job),
                 to_string(contender.granted),
                 to_string(contender.wanted),
                 worth(contender.last_per_gib),
                 worth(contender.next_per_gib)});
        }
    }
    return html_of(table);
}

std::string curve(const WhyFacts& why) {
    if (!why.explanation || why.explanation->curve.size() < 2) {
        return paragraph(
            "Not known: the operator was not asked, or has not measured the job yet.", "note");
    }
    const control::AllocationNumbers& numbers = why.explanation->allocation.numbers;
    return curve_svg(why.explanation->curve, why.explanation->allocation.target) +
           paragraph(fmt::format(
               "Predicted: {} with its bytes, {} without a cache, {} if data were never late.",
               rate_text(numbers.rate),
               rate_text(numbers.rate_without_cache),
               rate_text(numbers.ingest_rate)));
}

std::string reads(const TrainingJob& job) {
    if (!job.status.cache) {
        return "";
    }
    const control::CacheStatus& cache = *job.status.cache;
    const std::string bar = bar_svg(
        {{"from node or peer", bytes_of(cache.cache_bytes), "#0b5cad"},
         {"from the origin", bytes_of(cache.origin_bytes), "#c2410c"}});
    return bar.empty() ? paragraph("Nothing was read yet.", "note")
                       : bar + paragraph("Bytes that the program read in this attempt.", "note");
}

std::string datasets(const TrainingJob& job) {
    HtmlTable table{
        {"Dataset", "Samples", "Size", "Granted", "On its nodes", "Revision"}, {}, {1, 2, 3, 4}};
    for (const control::JobDatasetStatus& dataset : job.status.datasets) {
        table.rows.push_back(
            {dataset.name,
             fmt::format("{}", dataset.samples),
             to_string(bytes_of(dataset.total_bytes)),
             to_string(bytes_of(dataset.allocated_bytes)),
             to_string(bytes_of(dataset.used_bytes)),
             dataset.revision});
    }
    return html_of(table);
}

std::string container_text(const control::ContainerState& state) {
    std::string text = !state.reason.empty()           ? state.reason
                       : !state.waiting_reason.empty() ? state.waiting_reason
                       : state.ready                   ? "ready"
                       : state.started                 ? "running"
                                                       : "-";
    if (state.restart_count > 0) {
        text += fmt::format(", {} restart(s)", state.restart_count);
    }
    return text;
}

std::string pods(const std::vector<control::Pod>& pods) {
    constexpr std::array kPhases{"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    HtmlTable table{{"Rank", "Pod", "Node", "Phase", "Trainer", "Sidecar"}, {}, {0}};
    for (const control::Pod& pod : pods) {
        const auto rank = control::rank_of(pod);
        table.rows.push_back(
            {rank ? fmt::format("{}", *rank) : "-",
             pod.meta.name,
             pod.node_name,
             kPhases.at(static_cast<std::size_t>(pod.phase)),
             container_text(pod.trainer),
             container_text(pod.sidecar)});
    }
    return html_of(table);
}

std::string conditions(const TrainingJob& job) {
    HtmlTable table{{"Condition", "Status", "Reason", "Message"}, {}, {}};
    for (const control::Condition& condition : job.status.conditions) {
        table.rows.push_back(
            {condition.type,
             std::string{to_string(condition.status)},
             condition.reason,
             condition.message});
    }
    return html_of(table);
}

std::string events(const std::vector<ReportEvent>& events) {
    HtmlTable table{{"Time", "Type", "Reason", "Times", "Message"}, {}, {3}};
    for (const ReportEvent& event : events) {
        table.rows.push_back(
            {event.time, event.type, event.reason, fmt::format("{}", event.count), event.note});
    }
    return html_of(table);
}

std::string settings(const TrainingJob& job) {
    const control::CacheSpec& cache = job.spec.cache;
    const auto limit = [](const std::optional<Bytes>& bytes) {
        return bytes ? to_string(*bytes) : std::string{"none"};
    };
    HtmlTable table{{"Setting", "Value"}, {}, {}};
    table.rows = {
        {"trainer.image", job.spec.trainer.image},
        {"trainer.numNodes", fmt::format("{}", job.spec.trainer.node_count)},
        {"cache.mode", std::string{control::choice_text(cache.mode)}},
        {"cache.poolRef", cache.pool_ref.value_or("the namespace's default")},
        {"cache.minBytes", limit(cache.min_bytes)},
        {"cache.maxBytes", limit(cache.max_bytes)},
        {"cache.weight", fmt::format("{}", cache.weight)},
        {"cache.evictionPolicy", std::string{control::choice_text(cache.eviction_policy)}},
        {"cache.warmup", std::string{control::choice_text(cache.warmup)}},
        {"cache.onCacheFailure", std::string{control::choice_text(cache.on_cache_failure)}}};
    for (const control::JobDataset& dataset : job.spec.datasets) {
        table.rows.push_back(
            {fmt::format("datasets[{}]", dataset.name),
             fmt::format(
                 "{}, access {}, contract {}",
                 dataset.dataset_ref ? "Dataset " + *dataset.dataset_ref
                                     : dataset.storage_uri.value_or(""),
                 control::choice_text(dataset.access),
                 control::choice_text(dataset.contract))});
    }
    return html_of(table);
}

}  // namespace

ReportEvent read_event(const control::Json& json) {
    const auto first = [&json](std::initializer_list<control::JsonPath> paths) {
        for (const control::JsonPath path : paths) {
            if (std::string text = control::string_at(json.value(), path); !text.empty()) {
                return text;
            }
        }
        return std::string{};
    };
    ReportEvent event;
    event.time = first(
        {{"series", "lastObservedTime"},
         {"deprecatedLastTimestamp"},
         {"eventTime"},
         {"metadata", "creationTimestamp"}});
    event.type = first({{"type"}});
    event.reason = first({{"reason"}});
    event.note = first({{"note"}, {"message"}});
    event.count = control::integer_at(json.value(), {"series", "count"})
                      .value_or(control::integer_at(json.value(), {"deprecatedCount"}).value_or(1));
    return event;
}

std::string report_html(const ReportFacts& facts) {
    const TrainingJob& job = facts.why.job;
    const std::string name = to_string(job.meta.key());
    std::string html = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<title>TrainingJob {0}</title>\n<style>{1}</style>\n</head>\n<body>\n"
        "<h1>TrainingJob {0}</h1>\n",
        escaped(name),
        kStyle);
    html += summary(job) + section("Why it has these bytes", grant(facts.why)) +
            section("Speed over cached bytes", curve(facts.why)) +
            section("Where its bytes came from", reads(job)) +
            section("What would change the grant", remedies(facts.why)) +
            section("Jobs that want bytes of the same nodes", contenders(facts.why)) +
            section("Datasets", datasets(job)) + section("Pods", pods(facts.pods)) +
            section("Conditions", conditions(job)) + section("Events", events(facts.events)) +
            section("Settings", settings(job));
    for (const std::string& line : facts.left_out) {
        html += paragraph(line, "note");
    }
    return html +
           paragraph(
               fmt::format(
                   "Made at {} by kubectl-stoker {}.",
                   control::format_time(facts.made_at),
                   STOKER_VERSION),
               "note") +
           "</body>\n</html>\n";
}

}  // namespace stoker::cli
