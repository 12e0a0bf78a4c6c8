#pragma once

#include <memory>

#include "sidecar/device/device.h"

namespace stoker::sidecar {

// The machine's file systems. Stateless apart from its counters; one for the whole program.
std::unique_ptr<Device> make_posix_device();

// What errno value `number` of an operation on `path` means to us: the table in device.h.
Error posix_error(int number, std::string_view operation, std::string_view path);

}  // namespace stoker::sidecar
