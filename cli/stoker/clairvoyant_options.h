#pragma once

#include <string>

#include "common/flags/flags.h"
#include "sidecar/simulate/clairvoyance.h"

namespace stoker::cli {

// The flags that only --policy nopfs has. `given` gets the name of the last one that came. Both
// must outlive the flags.
FlagGroup clairvoyant_flags(simulate::ClairvoyantSpec& spec, std::string& given);

}  // namespace stoker::cli
