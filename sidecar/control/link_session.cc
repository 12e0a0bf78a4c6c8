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

void LinkSession::begin() {
    told_.clear();
    renewal_.lock()->on_stream();
}

LinkSession::Outgoing LinkSession::next_message(TimePoint now) {
    if (callbacks_.peer_request && renewal_.lock()->take(now)) {
        return {control::encode(control::PeerRequest{callbacks_.peer_request()}), Duration{}};
    }
    return next_report();
}

LinkSession::Outgoing LinkSession::next_report() {
    LinkReport report = callbacks_.report();
    report.sequence = ++sequence_;
    {
        const auto groups = groups_.lock();
        for (control::DatasetReport& dataset : report.datasets) {
            const auto group = groups->find(dataset.dataset_uid);
            const std::uint64_t version = group == groups->end() ? 0 : group->second;
            // The leader has not seen the newest group yet, whose reads may be others.
            dataset.reads_differ = dataset.reads_differ && dataset.peer_group_version == version;
            dataset.peer_group_version = version;
        }
    }
    fit_for_stream(report, told_);
    const Duration pause = report.awaits_pin
                               ? std::min(options_.waiting_interval, options_.report_interval)
                               : options_.report_interval;
    return {control::encode(report), pause};
}

bool LinkSession::on_message(const control::v1::OperatorMessage& message, TimePoint now) {
    const bool first = !attached_.exchange(true);
    const control::Orders orders = control::decode(message);
    for (const control::Grant& grant : orders.grants) {
        callbacks_.grant(grant);
    }
    if (orders.probe && callbacks_.probe) {
        callbacks_.probe(*orders.probe);
    }
    if (orders.signs_peers) {
        renewal_.lock()->on_signer();
    }
    if (orders.peer_certificate && callbacks_.peer_certificate) {
        renewal_.lock()->on_certificate(orders.peer_certificate->renew_seconds, now);
        callbacks_.peer_certificate(*orders.peer_certificate);
    }
    // Passes groups on before pins, because a pin starts the first epoch, which needs the group.
    std::ranges::for_each(orders.peers, [this](const auto& group) { take_group(group); });
    for (const control::RevisionPin& pin : orders.pins) {
        if (callbacks_.pin) {
            callbacks_.pin(pin);
        }
    }
    return first;
}

// Ignores old versions: an operator that lost the leadership may still send its group.
void LinkSession::take_group(const control::PeerGroup& group) {
    if (!callbacks_.peers) {
        return;
    }
    {
        const auto groups = groups_.lock();
        std::uint64_t& known = (*groups)[group.dataset_uid];
        if (group.version <= known) {
            return;
        }
        known = group.version;
    }
    callbacks_.peers(group);
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
