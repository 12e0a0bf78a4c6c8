#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "proto/local/sampling_frames.h"

namespace stoker::test {

// A job's Begin, of a contract with its default parameters.
inline local::Begin begin_of(std::string contract, std::string job, std::uint64_t epoch = 0) {
    local::Begin begin;
    begin.contract = std::move(contract);
    begin.job = std::move(job);
    begin.epoch = epoch;
    begin.seed = 3;
    begin.batch = 20;
    return begin;
}

}  // namespace stoker::test
