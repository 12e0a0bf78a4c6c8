#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/runtime/event_loop.h"
#include "sidecar/peers/peer_messages.h"

namespace stoker::sidecar {

// Collects the losses that ranks on this node report, as messages for the other nodes, and hands
// them over every kInterval. Reports stay whole if they fit into a message: contract `replicate`
// ranks the samples of a report. Losses beyond kEntriesMax in an interval are dropped. Use it on
// the loop's thread.
class LossSender {
public:
    static constexpr Duration kInterval = std::chrono::milliseconds{100};
    static constexpr std::size_t kEntriesMax = 16 * PeerLosses::kEntriesMax;

    // `sample_count`: of the dataset; reports of other samples are left out.
    LossSender(
        EventLoop& loop, std::uint64_t sample_count, std::function<void(const PeerLosses&)> send);

    // Adds one report. Losses that are not finite are left out, and so are reports of a job whose
    // name is longer than a message's text.
    void note(
        const std::string& job,
        std::uint64_t epoch,
        std::span<const domain::SampleIndex> samples,
        std::span<const float> losses);

private:
    PeerLosses& message_for(const std::string& job, std::uint64_t epoch, std::size_t entries);
    void send_all();

    const std::uint64_t sample_count_;
    std::function<void(const PeerLosses&)> send_;

    struct Filling {
        PeerLosses losses;
        std::size_t entries = 0;
    };

    std::vector<Filling> messages_;  // of this interval
    std::size_t entries_ = 0;        // in all of them
    LoopTimer timer_;
};

}  // namespace stoker::sidecar
