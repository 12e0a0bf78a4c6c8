#pragma once

#include <memory>
#include <vector>

#include "common/base/result.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/control/link_session.h"

// The sidecar's side of proto/control/v1/control.proto, with the types of wire/control.
namespace stoker::sidecar {

// Keeps one stream to the operator open: sends the sidecar's identity, reports at each interval,
// and passes orders on. Logs each new failure once and retries; nothing else in the sidecar waits
// for the operator. Reads the token and the CA again for every connection. The destructor sends a
// last report with the final counts, closes the stream and joins; no callback runs after it.
class ControlLink {
public:
    // kInvalidArgument: no CA, or a file of the settings cannot be read now.
    static Result<std::unique_ptr<ControlLink>> start(
        const ControlConfig& settings,
        const JobConfig& job,
        std::vector<DatasetConfig> datasets,
        LinkCallbacks callbacks,
        LinkOptions options);

    virtual ~ControlLink() = default;

    [[nodiscard]] virtual bool is_attached() const = 0;
};

}  // namespace stoker::sidecar
