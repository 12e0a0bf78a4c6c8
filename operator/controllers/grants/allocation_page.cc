#include "operator/controllers/grants/allocation_page.h"

#include <utility>

#include "operator/api/json.h"
#include "operator/core/allocation/snapshot.h"

namespace stoker::control {

namespace {

constexpr int kUnavailable = 503;

AllocationPage::Answer unavailable(const std::string& leader, const std::string& message) {
    return {kUnavailable, json_object({{"leader", leader}, {"message", message}}).text()};
}

}  // namespace

AllocationPage::AllocationPage(
    LatestAllocation& latest,
    const Clock& clock,
    std::string version,
    std::function<Leadership()> leadership)
    : latest_(latest),
      clock_(clock),
      version_(std::move(version)),
      leadership_(std::move(leadership)) {}

AllocationPage::Answer AllocationPage::answer() {
    const Leadership leadership = leadership_();
    if (!leadership.ours) {
        return unavailable(leadership.holder, "another replica leads and decides");
    }
    const LatestAllocation::Snapshot latest = latest_.get();
    if (!latest->decided_at) {
        return unavailable(leadership.holder, "this replica leads and has decided nothing yet");
    }
    return {
        200,
        print_snapshot(
            {version_, clock_.wall_now(), *latest->decided_at, latest->view, latest->plan})};
}

}  // namespace stoker::control
