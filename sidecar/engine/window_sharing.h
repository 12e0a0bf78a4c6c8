#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "sidecar/core/residency.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/core/sampling/sampler_settings.h"
#include "sidecar/engine/unread_draws.h"

namespace stoker::sidecar {

// The readers of the own party that share a scan, and what their loaders have drawn and not read.
// Not thread-safe.
class WindowSharing {
public:
    explicit WindowSharing(UnreadDraws::SizeOf record_bytes)
        : unread_(std::move(record_bytes)) {}

    // Whether readers with these settings take part in the scan of their party.
    static bool shares_a_scan(const SamplerSettings& settings) {
        const auto group = settings.parameters.find("chunkGroup");
        return settings.contract == "windowed" &&
               (group == settings.parameters.end() || group->second == 0);
    }

    // One more rank of the job reads.
    void join(const std::string& job) { ++ranks_[job]; }

    // A rank that has joined leaves and gives up its unread draws.
    void leave(
        const std::string& job, const std::unordered_map<SampleIndex, std::uint32_t>& unread) {
        for (const auto& [sample, count] : unread) {
            for (std::uint32_t i = 0; i < count; ++i) {
                unread_.on_read(sample);
            }
        }
        if (--ranks_.at(job) == 0) {
            ranks_.erase(job);
        }
    }

    void on_drawn(std::span<const Draw> draws, const Residency& node) {
        for (const Draw& draw : draws) {
            unread_.on_drawn(draw.served, node.is_stored(draw.served) && node.is_kept(draw.served));
        }
        draws_ += draws.size();
    }

    [[nodiscard]] UnreadDraws& unread() { return unread_; }

    [[nodiscard]] const UnreadDraws& unread() const { return unread_; }

    [[nodiscard]] std::size_t jobs() const { return ranks_.size(); }

    [[nodiscard]] std::size_t readers() const {
        std::size_t readers = 0;
        for (const auto& [job, ranks] : ranks_) {
            readers += ranks;
        }
        return readers;
    }

    // Draws so far.
    [[nodiscard]] std::uint64_t draws() const { return draws_; }

private:
    UnreadDraws unread_;
    std::map<std::string, std::size_t> ranks_;  // by job
    std::uint64_t draws_ = 0;
};

}  // namespace stoker::sidecar
