#include "sidecar/core/sampling/clairvoyant_model.h"

#include <algorithm>

namespace stoker::sidecar {

Result<BandwidthCurve> BandwidthCurve::make(std::vector<Point> points) {
    double users = 0;
    for (const Point& point : points) {
        if (!(point.users > users) || !(point.bytes_per_second > 0)) {
            return fail(
                ErrorCode::kInvalidArgument,
                "a bandwidth curve has rising users above zero and positive rates");
        }
        users = point.users;
    }
    if (points.empty()) {
        return fail(ErrorCode::kInvalidArgument, "a bandwidth curve without points");
    }
    return BandwidthCurve{std::move(points)};
}

double BandwidthCurve::total(double users) const {
    const auto above =
        std::ranges::find_if(points_, [users](const Point& point) { return point.users >= users; });
    if (above == points_.end()) {
        return points_.back().bytes_per_second;
    }
    if (above == points_.begin()) {
        return above->bytes_per_second * users / above->users;
    }
    const Point& below = *(above - 1);
    const double share = (users - below.users) / (above->users - below.users);
    return below.bytes_per_second + share * (above->bytes_per_second - below.bytes_per_second);
}

SourceChoice choose_source(const NodeModel& node, Bytes size, const Copies& copies) {
    const double bytes = static_cast<double>(size.count()) * node.staging.threads;
    SourceChoice best{Source::kOrigin, bytes / node.origin.each(node.origin_clients)};
    const auto tier_rate = [&node](std::uint32_t tier) {
        return node.tiers[tier].read.total(node.tiers[tier].threads);
    };
    if (copies.peer_tier != kNotHere) {
        const double seconds = bytes / std::min(node.peer, tier_rate(copies.peer_tier));
        if (seconds <= best.seconds) {
            best = {Source::kPeer, seconds};
        }
    }
    if (copies.local_tier != kNotHere) {
        const double seconds = bytes / tier_rate(copies.local_tier);
        if (seconds <= best.seconds) {
            best = {Source::kLocal, seconds};
        }
    }
    return best;
}

double write_seconds(const NodeModel& node, Bytes size) {
    const auto bytes = static_cast<double>(size.count());
    return std::max(bytes / node.preprocess, bytes / node.staging.write.each(node.staging.threads));
}

std::vector<double> consume_times(const NodeModel& node, std::span<const ModelRead> stream) {
    std::vector<double> times;
    times.reserve(stream.size() + 1);
    double work = 0;  // of all staging threads together
    double free_at = 0;
    for (const ModelRead& read : stream) {
        work +=
            choose_source(node, read.size, read.copies).seconds + write_seconds(node, read.size);
        times.push_back(std::max(work / node.staging.threads, free_at));
        free_at = times.back() + static_cast<double>(read.size.count()) / node.compute;
    }
    times.push_back(free_at);
    return times;
}

}  // namespace stoker::sidecar
