#include "sidecar/core/sampling/load_time.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace stoker::sidecar {

namespace {

constexpr std::uint64_t kMemory = 1024;  // requests
constexpr std::uint64_t kNotedMin = 64;
constexpr double kStall = 8;  // times the mean, or as many times more as the object is larger
// Smallest standard deviation of sizes, relative to their mean, that a slope can be fitted to.
constexpr double kSpreadMin = 0.01;
constexpr double kErrors = 4;  // a slope must exceed 0 by this many standard errors

}  // namespace

void LoadTime::note(Bytes size, Duration time) {
    const auto bytes = static_cast<double>(size.count());
    double seconds = std::max(0.0, std::chrono::duration<double>(time).count());
    if (noted_ >= kNotedMin) {
        seconds = std::min(seconds, kStall * seconds_ * std::max(1.0, bytes / bytes_));
    }
    noted_ = std::min(noted_ + 1, kMemory);
    const double weight = 1.0 / static_cast<double>(noted_);
    bytes_ += weight * (bytes - bytes_);
    seconds_ += weight * (seconds - seconds_);
    bytes_squared_ += weight * (bytes * bytes - bytes_squared_);
    seconds_squared_ += weight * (seconds * seconds - seconds_squared_);
    product_ += weight * (bytes * seconds - product_);
}

std::optional<double> LoadTime::latency_bytes() const {
    const double variance = bytes_squared_ - bytes_ * bytes_;
    if (noted_ < kNotedMin || variance <= std::pow(kSpreadMin * bytes_, 2)) {
        return std::nullopt;
    }
    const double seconds_per_byte = (product_ - bytes_ * seconds_) / variance;
    const double unexplained =
        seconds_squared_ - seconds_ * seconds_ - seconds_per_byte * seconds_per_byte * variance;
    const double error =
        std::sqrt(std::max(0.0, unexplained) / variance / static_cast<double>(noted_));
    if (seconds_per_byte <= kErrors * error) {
        return std::numeric_limits<double>::infinity();
    }
    const double latency_bytes = seconds_ / seconds_per_byte - bytes_;
    return latency_bytes < 1 ? 0 : std::exp2(std::round(std::log2(latency_bytes)));
}

}  // namespace stoker::sidecar
