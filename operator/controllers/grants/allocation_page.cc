#include "operator/controllers/grants/allocation_page.h"

#include "operator/api/json.h"
#include "operator/core/allocation/snapshot.h"

namespace stoker::control {

PageAnswer allocation_page(
    const Allocation& latest,
    WallTime now,
    const std::string& version,
    const Leadership& leadership) {
    if (leadership.ours && latest.decided_at) {
        return {200, print_snapshot({version, now, *latest.decided_at, latest.view, latest.plan})};
    }
    const char* message = leadership.ours
                              ? "this replica leads, but has not made a plan yet; try again"
                              : "another replica leads and has the plan";
    const Json json = json_object({{"leader", leadership.holder}, {"message", message}});
    return {503, json.text()};
}

}  // namespace stoker::control
