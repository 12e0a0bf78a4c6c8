#include "operator/controllers/grants/peer_keeper.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include "common/log/log.h"
#include "operator/controllers/gather.h"

namespace stoker::control {

namespace {

// Two operators' clocks differ by less than this. A report with a group version from beyond it is
// wrong; if it counted, all sidecars would get a higher version, which a later operator could not
// exceed.
constexpr std::chrono::hours kClockMargin{24};

}  // namespace

std::vector<ObjectKey> PeerKeeper::step(
    const ClusterView& cluster, bool settled, const Moment& now) {
    if (!book_) {
        book_.emplace(first_id(now.wall));
    }
    const PeerView view = find_peers(cluster, first_id(now.wall + kClockMargin));
    const std::set<std::string> changed = book_->observe(view, settled, now.steady);
    // Published even without a change: a job may begin to read a dataset whose group is older.
    parts_.registry.publish_peers(book_->groups());
    for (const WaitingPeerRequest& waiting : parts_.registry.waiting_peer_requests()) {
        answer(cluster, waiting);
    }
    std::vector<ObjectKey> jobs;
    for (const JobUse& use : cluster.jobs) {
        const bool reads = std::ranges::any_of(
            use.datasets->datasets,
            [&](const ResolvedDataset& dataset) { return changed.contains(dataset.uid); });
        if (reads && !use.filler) {
            jobs.push_back(use.job->meta.key());
        }
    }
    return jobs;
}

// A request of a pod that the cache does not show yet, or that may read nothing yet, stays
// unanswered: the watch may be behind.
void PeerKeeper::answer(const ClusterView& cluster, const WaitingPeerRequest& waiting) {
    const std::vector<std::string> uris = peer_uris_of(cluster, waiting.pod);
    if (!parts_.issue_peer || uris.empty()) {
        return;
    }
    const auto certificate = parts_.issue_peer(waiting.request.request_pem, uris);
    if (!certificate) {
        log::warning(
            "no peer certificate issued",
            {{"namespace", waiting.pod.ns},
             {"pod", waiting.pod.name},
             {"error", certificate.error().message}});
    }
    parts_.registry.answer_peer_request(
        waiting.session, certificate ? std::optional(*certificate) : std::nullopt);
}

}  // namespace stoker::control
