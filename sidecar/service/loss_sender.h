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

// Collects the losses that ranks on this node report into messages for the other nodes, and passes
// the messages on every kInterval. A report stays whole if it fits into a message, because contract
// `replicate` ranks the samples of a report. Losses beyond kEntriesMax in an interval are dropped.
// Use it on the loop's thread.
class LossSender {
public:
    static constexpr Duration kInterval = std::chrono::milliseconds{100};
    static constexpr std::size_t kEntriesMax = 16 * PeerLosses::kEntriesMax;

    // `sample_count`: samples of the dataset; losses of ids beyond it are left out.
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

    std::vector<Filling> messages_;  // messages of this interval
    std::size_t entries_ = 0;        // losses in all messages_
    LoopTimer timer_;
};

}  // namespace stoker::sidecar
