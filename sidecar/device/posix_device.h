#pragma once

#include <memory>

#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The machine's file systems. Stateless apart from its counters; one for the whole program.
std::unique_ptr<Device> make_posix_device();

}  // namespace stoker::sidecar
