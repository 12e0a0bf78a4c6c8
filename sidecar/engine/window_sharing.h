#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "common/base/flat_map.h"
#include "sidecar/core/residency.h"
#include "sidecar/core/sampling/sampler.h"
#include "sidecar/core/sampling/sampler_settings.h"
#include "sidecar/engine/unread_draws.h"

namespace stoker::sidecar {

// The readers of the own party that share a scan, and the samples that their loaders have drawn and
// not read. Unread draws are tracked only while at least two jobs share the scan: a job alone needs
// no room for them. Not thread-safe.
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

    // Adds a rank of the job. True: the scan has become shared, so call track() for all
    // readers.
    bool join(const std::string& job) {
        const bool was_shared = is_shared();
        ++ranks_[job];
        return is_shared() && !was_shared;
    }

    // Removes a rank that has joined, and gives up its unread draws.
    void leave(const std::string& job, const FlatMap<std::uint32_t>& unread) {
        if (is_shared()) {
            unread.for_each([this](SampleIndex sample, std::uint32_t count) {
                for (; count > 0; --count) {
                    unread_.on_read(sample);
                }
            });
        }
        if (--ranks_.at(job) == 0) {
            ranks_.erase(job);
        }
        if (!is_shared()) {
            unread_.clear();
        }
    }

    // Whether at least two jobs read.
    [[nodiscard]] bool is_shared() const { return ranks_.size() > 1; }

    // Adds the unread draws of a reader that joined before.
    void track(const FlatMap<std::uint32_t>& unread, const Residency& node) {
        unread.for_each([this, &node](SampleIndex sample, std::uint32_t count) {
            for (; count > 0; --count) {
                unread_.on_drawn(sample, node.is_stored(sample) && node.is_kept(sample));
            }
        });
    }

    void on_drawn(std::span<const Draw> draws, const Residency& node) {
        draws_ += draws.size();
        if (!is_shared()) {
            return;
        }
        for (const Draw& draw : draws) {
            unread_.on_drawn(draw.served, node.is_stored(draw.served) && node.is_kept(draw.served));
        }
    }

    // A reader that has joined has read its unread draw.
    void on_read(SampleIndex sample) {
        if (is_shared()) {
            unread_.on_read(sample);
        }
    }

    void on_residency(SampleIndex sample, bool is_resident) {
        unread_.on_residency(sample, is_resident);
    }

    // Empty unless is_shared().
    [[nodiscard]] const UnreadDraws& unread() const { return unread_; }

    [[nodiscard]] std::size_t readers() const {
        std::size_t readers = 0;
        for (const auto& [job, ranks] : ranks_) {
            readers += ranks;
        }
        return readers;
    }

    // Number of draws so far, of all readers.
    [[nodiscard]] std::uint64_t draws() const { return draws_; }

private:
    UnreadDraws unread_;
    std::map<std::string, std::size_t> ranks_;  // number of joined ranks, by job
    std::uint64_t draws_ = 0;
};

}  // namespace stoker::sidecar
