#include "sidecar/control/link_session.h"

#include <algorithm>
#include <utility>

#include "wire/control/codec/control_codec.h"

namespace stoker::sidecar {

LinkSession::LinkSession(
    const JobConfig& job,
    const std::vector<DatasetConfig>& datasets,
    LinkCallbacks callbacks,
    LinkOptions options)
    : hello_(control::encode(make_hello(job, datasets))),
      callbacks_(std::move(callbacks)),
      options_(options),
      prng_(options.seed),
      retry_(options.retry_min) {}

LinkSession::Outgoing LinkSession::next_report() {
    LinkReport report = callbacks_.report();
    report.sequence = ++sequence_;
    fit_for_stream(report, told_);
    const Duration pause = report.awaits_pin
                               ? std::min(options_.waiting_interval, options_.report_interval)
                               : options_.report_interval;
    return {control::encode(report), pause};
}

bool LinkSession::on_message(const control::v1::OperatorMessage& message) {
    const bool first = !attached_.exchange(true);
    const control::Orders orders = control::decode(message);
    for (const control::Grant& grant : orders.grants) {
        callbacks_.grant(grant);
    }
    if (orders.probe && callbacks_.probe) {
        callbacks_.probe(*orders.probe);
    }
    for (const control::RevisionPin& pin : orders.pins) {
        if (callbacks_.pin) {
            callbacks_.pin(pin);
        }
    }
    return first;
}

Duration LinkSession::on_end(bool unreached) {
    if (attached_.exchange(false)) {
        retry_ = options_.retry_min;
    }
    const Duration wait = unreached ? std::min(retry_, options_.unreached_max) : retry_;
    retry_ = std::min(retry_ + retry_ / 4, options_.retry_max);
    return std::chrono::duration_cast<Duration>(wait * (0.5 + prng_.unit()));
}

}  // namespace stoker::sidecar
