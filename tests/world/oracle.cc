#include "tests/world/oracle.h"

#include <algorithm>

#include <fmt/format.h>

namespace stoker::world {

Oracle::Oracle(Schedule& schedule, const test::Dataset& dataset)
    : schedule_(schedule),
      dataset_(dataset) {
    for (std::uint64_t id = 0; id < dataset.manifest().sample_count(); ++id) {
        payloads_.push_back(dataset.payload(domain::SampleId{id}));
    }
}

void Oracle::accuse(const std::string& what) {
    if (accusation_.empty()) {
        accusation_ = what;
        schedule_.say("BROKEN: " + what);
    }
}

void Oracle::on_served(
    const std::string& trainer,
    std::uint64_t sample,
    std::span<const std::byte> bytes,
    const char* source) {
    ++counts[fmt::format("samples from the {}", source)];
    if (!has_equal_bytes(bytes, payload(sample))) {
        accuse(fmt::format(
            "{} got bytes of sample {} from the {} that are not the origin's",
            trainer,
            sample,
            source));
    }
}

void Oracle::on_epoch(
    const EpochRead& epoch,
    const std::map<std::uint64_t, std::uint32_t>& counts_of_epoch,
    const std::vector<std::uint64_t>& share) {
    ++counts["epochs: " + epoch.contract];
    std::map<std::uint64_t, std::uint32_t> want;
    for (const std::uint64_t id : share) {
        ++want[id];
    }
    const bool is_exact =
        epoch.contract == "exact" || epoch.contract == "windowed" || epoch.is_full;
    std::uint64_t drawn = 0;
    std::uint32_t most = 0;
    for (std::uint64_t id = 0; id < sample_count(); ++id) {
        const auto got = counts_of_epoch.find(id);
        const std::uint32_t times = got == counts_of_epoch.end() ? 0 : got->second;
        const auto due = want.find(id);
        const std::uint32_t wanted = due == want.end() ? 0 : due->second;
        drawn += times;
        most = std::max(most, times);
        if (is_exact && epoch.contract != "replicate" && times != wanted) {
            accuse(fmt::format(
                "{} read sample {} {} times in epoch {}, not {}",
                epoch.trainer,
                id,
                times,
                epoch.epoch,
                wanted));
        }
    }
    check_draws(epoch, drawn, most, share.size());
}

// Limits of the contracts that repeat samples. importance: an epoch reads a sample at most twice
// (once as a substitute), and has at most as many draws as the rank's share has samples. replicate:
// an epoch has exactly as many draws as the rank's share has samples.
void Oracle::check_draws(
    const EpochRead& epoch, std::uint64_t drawn, std::uint32_t most, std::size_t share) {
    const bool repeats = epoch.contract == "importance" && most > 2;
    const bool is_too_much = epoch.contract == "importance" && drawn > share;
    const bool is_other = epoch.contract == "replicate" && drawn != share;
    if (repeats || is_too_much || is_other) {
        accuse(fmt::format(
            "{} drew {} samples, one of them {} times, in epoch {} under {}; its share has {}",
            epoch.trainer,
            drawn,
            most,
            epoch.epoch,
            epoch.contract,
            share));
    }
}

void Oracle::begin_fetch(const std::string& sidecar, const std::string& key, bool is_on_node) {
    ++counts["fetches"];
    const auto [at, is_new] = in_flight_.emplace(key, sidecar);
    if (!is_new) {
        accuse(fmt::format(
            "{} fetches {} while {} has a fetch of it in flight", sidecar, key, at->second));
    }
    if (is_on_node) {
        accuse(fmt::format("{} fetches {}, which is on the node", sidecar, key));
    }
}

}  // namespace stoker::world
