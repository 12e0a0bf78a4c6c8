#include "sidecar/core/sampling/sampler_settings.h"

namespace stoker::sidecar {

Status SamplerSettings::check(std::uint32_t samples) const {
    if (samples == 0 || ranks == 0) {
        return fail(ErrorCode::kInvalidArgument, "a sampler needs at least 1 sample and 1 rank");
    }
    return domain::check_values(contract, parameters);
}

}  // namespace stoker::sidecar
