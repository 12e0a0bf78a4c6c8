// stoker-many-nodes: epochs of one exact job with a rank on each of NODES simulated nodes, in virtual
// time, as JSON. bench/many_nodes.py runs it (docs/experiments/many-nodes.md).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/domain/segment_format.h"
#include "tests/world/world.h"

namespace stoker::world {
namespace {

using std::chrono::seconds;

constexpr Duration kBegin = seconds{12};  // trainers start; the peers know each other
constexpr Duration kStep = std::chrono::microseconds{500};  // resolution of the measured times
constexpr Duration kPatience = seconds{600};

// The command line's values, by name.
using Numbers = std::map<std::string_view, double>;

Duration in_ms(double value) {
    return Duration{static_cast<Duration::rep>(value * 1e6)};
}

Script script_of(const Numbers& numbers) {
    Script script;
    script.samples = static_cast<std::uint64_t>(numbers.at("--samples"));
    script.sample_bytes = static_cast<std::uint64_t>(numbers.at("--sample-bytes"));
    const std::uint64_t record = domain::record_bytes(script.sample_bytes);
    script.grant = Bytes{static_cast<std::uint64_t>(
        numbers.at("--pool") * numbers.at("--samples") * static_cast<double>(record) /
        numbers.at("--nodes"))};
    script.origin_bytes_per_second = numbers.at("--origin-rate");
    // The world's delays are between half and twice these values: 1.25 times them on average.
    script.origin_latency = in_ms(numbers.at("--first-byte-ms") / 1.25);
    script.peer_delay = in_ms(numbers.at("--rtt-ms") / 2 / 1.25);
    script.compute = in_ms(8000 / numbers.at("--compute"));
    script.epochs = static_cast<std::uint64_t>(numbers.at("--epochs"));
    script.has_peers = numbers.at("--peers") > 0;
    script.trainers_wait = kBegin;
    script.lasts = kPatience;
    return script;
}

// Runs until every rank has ended this epoch. False: a promise was broken, or the epoch does not
// end.
bool run_epoch(World& world, std::size_t nodes, std::uint64_t epoch) {
    for (Duration passed{}; passed < kPatience; passed += kStep) {
        std::uint64_t slowest = UINT64_MAX;
        for (std::size_t node = 0; node < nodes; ++node) {
            slowest = std::min(slowest, world.epoch(node));
        }
        if (slowest > epoch) {
            return true;
        }
        if (const std::string accusation = world.run_for(kStep); !accusation.empty()) {
            fmt::print(stderr, "{}\n", accusation);
            return false;
        }
    }
    return false;
}

int run(const Numbers& numbers) {
    const auto nodes = static_cast<std::size_t>(numbers.at("--nodes"));
    const Script script = script_of(numbers);
    World world{1, {.nodes = nodes, .jobs = 1, .pods = nodes}, script};
    world.run_for(kBegin);
    std::vector<double> epoch_s;
    std::vector<std::uint64_t> gets;
    Duration before = world.passed();
    for (std::uint64_t epoch = 0; epoch < script.epochs; ++epoch) {
        const std::uint64_t fetched = world.count("fetches");
        if (!run_epoch(world, nodes, epoch)) {
            return EXIT_FAILURE;
        }
        epoch_s.push_back(seconds_of(world.passed() - before));
        gets.push_back(world.count("fetches") - fetched);
        before = world.passed();
    }
    std::uint64_t in_place_of_peers = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
        const sidecar::LeaderStatus status = world.status(node);
        in_place_of_peers += status.peer_hedges + status.peer_failures;
    }
    fmt::print(
        "{{\"seconds\": [{:.4f}], \"gets\": [{}], \"instead_of_peers\": {}}}\n",
        fmt::join(epoch_s, ", "),
        fmt::join(gets, ", "),
        in_place_of_peers);
    return EXIT_SUCCESS;
}

constexpr const char* kUsage =
    "usage: stoker-many-nodes [--nodes N] [--peers 0|1] [--rtt-ms T] [--epochs N] [--samples N]\n"
    "  [--sample-bytes N] [--pool SHARE] [--origin-rate BYTES_PER_SECOND] [--first-byte-ms T]\n"
    "  [--compute SAMPLES_PER_SECOND]\n";

}  // namespace
}  // namespace stoker::world

int main(int argc, char** argv) {
    stoker::world::Numbers numbers = {
        {"--nodes", 4},
        {"--peers", 1},
        {"--rtt-ms", 2},
        {"--epochs", 4},
        {"--samples", 3200},
        {"--sample-bytes", 10'000},
        {"--pool", 1.5},
        {"--origin-rate", 4e6},
        {"--first-byte-ms", 20},
        {"--compute", 500}};
    for (int i = 1; i < argc; i += 2) {
        const auto number = numbers.find(argv[i]);
        char* end = nullptr;
        const double value = i + 1 < argc ? std::strtod(argv[i + 1], &end) : 0;
        if (number == numbers.end() || end == nullptr || *end != '\0') {
            fmt::print(stderr, "{}", stoker::world::kUsage);
            return EXIT_FAILURE;
        }
        number->second = value;
    }
    return stoker::world::run(numbers);
}
