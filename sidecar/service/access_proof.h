#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "common/domain/ids.h"
#include "common/runtime/event_loop.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Whether a fetch from the origin `uri` that failed with `code` still shows that the origin
// accepted its key. With the S3 API, an object that is changed or corrupt could be read. A web
// server shows nothing: its sign-in page also looks like a changed object.
bool proves_access(std::string_view uri, ErrorCode code);

// Proves that this pod may read a dataset that another sidecar leads: before the pod uses the node
// directory, its own key must read one object of the revision at the origin (64 KiB of the smallest
// of some thousands). Not needed if the leader listed for our own job, which has our key, or if the
// Dataset's owner admits our namespace. Use it on the loop's thread.
class AccessProof {
public:
    enum class State : std::uint8_t {
        kAsking,
        kProven,
        kRefused,  // the origin answered 401 or 403
        kFailed,   // the check could not be made; ask() retries after a while
    };

    // `on_change`: called on each answer. The arguments must outlive this object.
    AccessProof(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        std::function<void()> on_change);

    // The state for this revision; starts a check if there is no valid answer.
    State ask(domain::RevisionId revision);

    // The reason for kRefused and kFailed.
    [[nodiscard]] const Error& error() const { return error_; }

    // State of the last revision passed to ask(); nullopt: none.
    [[nodiscard]] std::optional<State> state() const {
        return revision_ ? std::optional{state_} : std::nullopt;
    }

private:
    void find_object();
    void fetch(const OriginFetch& request);
    void settle(domain::RevisionId revision, State state, Error error);

    const SidecarParts parts_;
    const DatasetConfig& config_;
    Origin& origin_;
    std::function<void()> on_change_;
    std::optional<domain::RevisionId> revision_;
    State state_ = State::kAsking;
    Error error_;
    TimePoint asked_again_at_{};
    LoopTasks tasks_;
};

}  // namespace stoker::sidecar
