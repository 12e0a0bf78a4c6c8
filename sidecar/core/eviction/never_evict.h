#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sidecar/core/eviction/eviction_policy.h"

namespace stoker::sidecar {

// Keeps the first samples to arrive (CoorDL's MinIO, section 4.1). Every epoch of a job that reads
// each sample once then costs exactly (1-w)N fetches if a share w fits, which no evicting policy
// can beat in a uniform random order. A shrinking grant evicts residents in a fixed uniform order,
// independent of ids and plans, so that a uniform subset remains. Each shrink() continues where the
// last one stopped, so it does not visit all samples. Memory: 4 bytes per sample; a sample of more
// than 4 GiB counts as 4 GiB.
class NeverEvict final : public EvictionPolicy {
public:
    void on_resident(SampleIndex sample, Bytes bytes) override;
    void on_gone(SampleIndex sample) override;

    void on_read(SampleIndex /*sample*/, bool /*hit*/) override {}

    bool make_room(
        SampleIndex /*incoming*/,
        Bytes /*needed*/,
        const MayGo& /*may_go*/,
        std::vector<SampleIndex>& /*victims*/) override {
        return false;
    }

    void shrink(Bytes excess, std::vector<SampleIndex>& victims) override;

private:
    // Size by sample; 0: not resident. Unlike a vector, a deque grows without copying itself.
    std::deque<std::uint32_t> bytes_;
    std::uint64_t position_ = 0;  // position of the next candidate in the order of eviction
};

}  // namespace stoker::sidecar
