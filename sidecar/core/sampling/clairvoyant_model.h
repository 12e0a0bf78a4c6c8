#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"

// Read times and the fastest source of a sample (the performance model of NoPFS, SC 2021). Times in
// seconds, rates in bytes per second. Pure.
namespace stoker::sidecar {

// Total rate by number of users (threads, clients), interpolated linearly between measured points;
// proportional to the users before the first point, constant after the last.
class BandwidthCurve {
public:
    struct Point {
        double users = 0;
        double bytes_per_second = 0;
    };

    // kInvalidArgument: no points, user counts that are not positive and rising, a rate that is not
    // positive.
    static Result<BandwidthCurve> make(std::vector<Point> points);

    [[nodiscard]] double total(double users) const;

    // Rate per user.
    [[nodiscard]] double each(double users) const { return total(users) / users; }

private:
    explicit BandwidthCurve(std::vector<Point> points)
        : points_(std::move(points)) {}

    std::vector<Point> points_;
};

struct TierModel {
    BandwidthCurve read;
    BandwidthCurve write;
    double threads = 1;  // that read or write at the same time
};

struct NodeModel {
    double compute = 0;     // the trainer's appetite
    double preprocess = 0;  // decoding
    double peer = 0;        // of the node from all others
    BandwidthCurve origin;  // by clients
    double origin_clients = 1;
    TierModel staging;  // the buffer that the trainer reads from
    std::vector<TierModel> tiers;
};

enum class Source : std::uint8_t { kLocal, kPeer, kOrigin };

constexpr std::uint32_t kNotHere = UINT32_MAX;

// Locations of a sample: the fastest tier that holds it here, and at a peer.
struct Copies {
    std::uint32_t local_tier = kNotHere;
    std::uint32_t peer_tier = kNotHere;
};

struct SourceChoice {
    Source source = Source::kOrigin;
    double seconds = 0;

    bool operator==(const SourceChoice&) const = default;
};

// The fastest source for one of the `staging.threads` threads, which share the node's rate at each
// source: together they never read faster than that rate. Between equals local, then peer, then
// origin. (The paper gives every thread the whole rate of a client, Section 5.1, so in its model
// more threads mean a faster link.)
SourceChoice choose_source(const NodeModel& node, Bytes size, const Copies& copies);

// Time to write into the staging buffer: decoding or writing, whichever is slower.
double write_seconds(const NodeModel& node, Bytes size);

struct ModelRead {
    Bytes size{};
    Copies copies;
};

// Start time of each read of the trainer's stream, then the end of the last one: stream.size() + 1
// times. A read starts when its bytes have arrived and the training step on the previous read is
// finished; the staging threads fetch and write in parallel.
std::vector<double> consume_times(const NodeModel& node, std::span<const ModelRead> stream);

}  // namespace stoker::sidecar
