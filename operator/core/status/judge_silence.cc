#include "operator/core/status/judge_silence.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "operator/api/time_format.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/status/name_some.h"
#include "operator/core/view/training_job_view.h"
#include "operator/core/view/warmups.h"

namespace stoker::control {

Duration silence_of(const WarmupNodeStatus& node, const WarmupView& view, const Moment& now) {
    if (!node.silent_since || !view.listening_since) {
        return {};
    }
    return std::min<Duration>(now.wall - *node.silent_since, now.steady - *view.listening_since);
}

Condition judge_silence(
    const std::vector<WarmupNodeStatus>& nodes, const WarmupView& view, const Moment& now) {
    constexpr std::size_t kToldMax = 5;
    std::vector<std::string> silent;
    bool starts = false;
    for (const WarmupNodeStatus& node : nodes) {
        starts |= node.silent_since.has_value();
        if (silence_of(node, view, now) < kReportAgeMax) {
            continue;
        }
        silent.push_back(fmt::format("{} (since {})", node.node, format_time(*node.silent_since)));
    }
    if (silent.empty()) {
        return starts ? unknown("Starting", "Waits for reports of all nodes.")
                      : holds("AllNodes", "A leading sidecar of each node reports.");
    }
    // The times of the message: kFillerSilenceMax and kWarmupNodeLostAfter.
    return fails(
        "NodesSilent",
        fmt::format(
            "No leading sidecar reports from {}. See kubectl -n {} get pods -o wide -l {}={}: a "
            "pod may lack its image, quota or network. A filler that is ready, but does not report "
            "for 5 minutes, is replaced. A node that is silent for 10 minutes is Lost, and the "
            "warm-up fails when the others have ended.",
            name_some(std::move(silent), kToldMax),
            view.warmup.meta.ns,
            kFillerLabel,
            view.dataset->meta.uid));
}

}  // namespace stoker::control
