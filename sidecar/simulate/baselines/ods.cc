#include "sidecar/simulate/baselines/ods.h"

#include <algorithm>

namespace stoker::simulate {

namespace {

// Random tries to find an absent sample: enough unless the cache holds nearly the whole dataset.
constexpr std::uint32_t kRefillLooks = 64;

}  // namespace

OdsCache::OdsCache(std::uint64_t samples, std::uint32_t jobs, std::uint64_t seed)
    : samples_(samples),
      jobs_(jobs),
      prng_(seed),
      residents_(samples),
      reads_(samples),
      bytes_(samples) {}

void OdsCache::on_resident(SampleIndex sample, Bytes bytes) {
    residents_.add(sample);
    refills_.erase(sample);
    bytes_[sample] = bytes;
    reads_[sample] = 0;
}

void OdsCache::on_gone(SampleIndex sample) {
    residents_.remove(sample);
    std::erase(used_up_, sample);
}

void OdsCache::on_read(SampleIndex sample, bool /*hit*/) {
    if (residents_.contains(sample) && ++reads_[sample] == jobs_) {
        used_up_.push_back(sample);
    }
}

bool OdsCache::make_room(
    SampleIndex incoming, Bytes needed, const MayGo& may_go, std::vector<SampleIndex>& victims) {
    if (!refills_.contains(incoming)) {
        return false;
    }
    Bytes room{};
    for (const SampleIndex sample : used_up_) {
        if (room < needed && may_go(sample)) {
            room += bytes_[sample];
            victims.push_back(sample);
        }
    }
    if (room < needed) {
        victims.clear();
    }
    return room >= needed;
}

void OdsCache::take_refills(std::vector<SampleIndex>& samples) {
    for (std::uint32_t look = 0; look < kRefillLooks && refills_.size() < used_up_.size();) {
        const auto candidate = static_cast<SampleIndex>(prng_.below(samples_));
        if (!residents_.contains(candidate) && refills_.insert(candidate).second) {
            samples.push_back(candidate);
            look = 0;
        } else {
            ++look;
        }
    }
}

void OdsCache::shrink(Bytes excess, std::vector<SampleIndex>& victims) {
    Bytes room{};
    for (SampleIndex sample = 0; sample < samples_ && room < excess; ++sample) {
        if (residents_.contains(sample)) {
            room += bytes_[sample];
            victims.push_back(sample);
        }
    }
}

OdsSampler::OdsSampler(
    const OdsCache& cache, std::uint64_t samples, std::uint32_t probes, std::uint64_t seed)
    : SwapOrder(samples, seed),
      cache_(cache),
      probes_(probes),
      prng_(seed) {}

void OdsSampler::draw(std::uint32_t /*rank*/, std::size_t count, std::vector<Draw>& draws) {
    const Residents& residents = cache_.residents();
    for (std::size_t i = 0; i < count && !is_at_end(); ++i) {
        SampleIndex sample = next();
        if (!residents.contains(sample) && residents.size() > 0) {
            for (std::uint32_t probe = 0; probe < probes_; ++probe) {
                const SampleIndex candidate = residents.random(prng_);
                if (is_unread(candidate)) {
                    sample = candidate;
                    break;
                }
            }
        }
        read(sample, draws);
    }
}

}  // namespace stoker::simulate
