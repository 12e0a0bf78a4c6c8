#include "sidecar/service/loss_sender.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sidecar/core/sampling/loss_code.h"

namespace stoker::sidecar {

LossSender::LossSender(
    EventLoop& loop, std::uint64_t sample_count, std::function<void(const PeerLosses&)> send)
    : sample_count_(sample_count),
      send_(std::move(send)),
      timer_(loop) {}

void LossSender::note(
    const std::string& job,
    std::uint64_t epoch,
    std::span<const domain::SampleIndex> samples,
    std::span<const float> losses) {
    if (job.size() > PeerHello::kTextMax || samples.size() != losses.size()) {
        return;
    }
    const bool is_first = messages_.empty();
    PeerLosses::Report report;
    const auto add = [&] {
        if (!report.samples.empty()) {
            entries_ += report.samples.size();
            message_for(job, epoch, report.samples.size())
                .reports.push_back(std::exchange(report, {}));
        }
    };
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (entries_ + report.samples.size() == kEntriesMax) {
            break;
        }
        if (samples[i] < sample_count_ && std::isfinite(losses[i])) {
            report.samples.push_back(samples[i]);
            report.codes.push_back(LossCode::code_of(losses[i]));
        }
        if (report.samples.size() == PeerLosses::kEntriesMax) {
            add();
        }
    }
    add();
    if (is_first && !messages_.empty()) {
        timer_.run_in(kInterval, [this] { send_all(); });
    }
}

// The job's last message for the epoch, or a new one if that message is full.
PeerLosses& LossSender::message_for(
    const std::string& job, std::uint64_t epoch, std::size_t entries) {
    const auto last = std::find_if(messages_.rbegin(), messages_.rend(), [&](const auto& message) {
        return message.losses.job == job && message.losses.epoch == epoch;
    });
    if (last == messages_.rend() || last->entries + entries > PeerLosses::kEntriesMax) {
        messages_.push_back({{job, epoch, {}}, entries});
        return messages_.back().losses;
    }
    last->entries += entries;
    return last->losses;
}

void LossSender::send_all() {
    entries_ = 0;
    for (const Filling& message : std::exchange(messages_, {})) {
        send_(message.losses);
    }
}

}  // namespace stoker::sidecar
