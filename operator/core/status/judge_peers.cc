#include "operator/core/status/judge_peers.h"

#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/saturating.h"
#include "operator/core/spec/make_condition.h"
#include "operator/core/view/peer_book.h"

namespace stoker::control {

namespace {

template <class Visit>
void for_each_part(
    const std::string& dataset_uid, const std::vector<SidecarReport>& reports, Visit visit) {
    for (const SidecarReport& report : reports) {
        for (const DatasetReport& dataset : report.datasets) {
            if (dataset.dataset_uid == dataset_uid) {
                visit(report, dataset);
            }
        }
    }
}

std::string port_of(const PeerGroup& group) {
    const std::string& address = group.members.front().address;
    return address.substr(address.rfind(':') + 1);
}

}  // namespace

std::optional<DatasetPeersStatus> measure_peers(
    const std::string& dataset_uid,
    const std::optional<PeerGroup>& group,
    const std::vector<SidecarReport>& reports) {
    if (!group || group->members.size() < 2) {
        return std::nullopt;
    }
    DatasetPeersStatus status;
    status.nodes = static_cast<std::int64_t>(group->members.size());
    if (group->reads) {
        status.placement = SamplePlacement::kClairvoyant;
    }
    const auto add = [](std::int64_t& sum, std::uint64_t more) {
        sum = add_saturated(sum, count_of(more));
    };
    for_each_part(dataset_uid, reports, [&](const SidecarReport&, const DatasetReport& dataset) {
        add(status.bytes_read, dataset.peer_bytes_read.count());
        add(status.samples, dataset.peer_samples);
        add(status.hedges, dataset.peer_hedges);
        add(status.failures, dataset.peer_failures);
    });
    return status;
}

std::optional<Condition> judge_peers(
    const std::string& dataset_uid,
    const std::optional<PeerGroup>& group,
    const std::vector<SidecarReport>& reports,
    const Moment& now) {
    if (!group || group->members.size() < 2) {
        return std::nullopt;
    }
    const std::set<std::string> cut = cut_off_nodes(dataset_uid, reports, now);
    if (cut.empty()) {
        return holds(
            "Reachable",
            fmt::format("{} nodes fetch samples from each other.", group->members.size()));
    }
    return fails(
        "PeersUnreachable",
        fmt::format(
            "These nodes cannot connect to the other nodes: {}. They read all samples from the "
            "origin. Pods of the Dataset's namespace must reach each other on TCP port {}: allow "
            "it in the namespace's NetworkPolicies, or set spec.peers to Off.",
            fmt::join(cut, ", "),
            port_of(*group)));
}

}  // namespace stoker::control
