#pragma once

#include <string>

#include "common/flags/flags.h"
#include "sidecar/simulate/clairvoyance.h"

namespace stoker::cli {

// The flags of --policy nopfs only. `given` receives the name of the last flag that was set. Both
// arguments must outlive the flags.
FlagGroup clairvoyant_flags(simulate::ClairvoyantSpec& spec, std::string& given);

}  // namespace stoker::cli
