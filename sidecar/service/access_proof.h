#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/domain/ids.h"
#include "common/runtime/loop_tasks.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/origin/origin.h"
#include "sidecar/service/sidecar_parts.h"

namespace stoker::sidecar {

// Whether this pod may read a dataset that another sidecar leads: before anything of the node
// directory is used, our own key has to read one object of the revision (the smallest of some
// thousands) at the origin. Not asked where the leader listed for our own job, which has our key,
// or where the Dataset's owner admits our namespace. Belongs to the loop's thread.
class AccessProof {
public:
    enum class State : std::uint8_t {
        kAsking,
        kProven,
        kRefused,  // 401, 403
        kFailed,   // could not be asked; asked again when ask() is called after a while
    };

    // `on_change`: an answer has come. What it is made with outlives it.
    AccessProof(
        const SidecarParts& parts,
        const DatasetConfig& config,
        Origin& origin,
        std::function<void()> on_change);

    // The answer for this revision, asking if there is none yet, or none that still counts.
    State ask(domain::RevisionId revision);

    // kRefused and kFailed: why.
    [[nodiscard]] const Error& error() const { return error_; }

    // State of the revision that was asked for last; nullopt: none was.
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
