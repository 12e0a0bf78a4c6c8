#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/src/core/sidecar_client.h"
#include "common/base/clock.h"
#include "sidecar/attached/cached_dataset.h"

namespace stoker::attached {

// This program's Hello for a dataset: without a stream, because its clients announce no order.
local::Hello hello_for(const CachedDataset& dataset);

// Keeps one connection to the sidecar for each dataset, all on one thread: connects, and reconnects
// with growing pauses; publishes the revision's files; sends reads and counters. Losing the sidecar
// only changes is_attached(): the files stay usable.
class SidecarLinks {
public:
    // Starts the thread. All arguments must outlive this object, whose destructor stops the thread.
    SidecarLinks(
        const std::string& socket_path,
        const std::vector<std::unique_ptr<CachedDataset>>& datasets,
        const Clock& clock);
    SidecarLinks(const SidecarLinks&) = delete;
    SidecarLinks& operator=(const SidecarLinks&) = delete;
    // Sends the last counters and stops the thread.
    ~SidecarLinks();

private:
    struct Link {
        CachedDataset* dataset = nullptr;
        std::optional<client::SidecarClient> client;
        bool is_welcome = false;
        bool was_attached = false;
        Duration delay{};
        TimePoint not_before{};
        TimePoint report_due{};
        ReadCounts told;
    };

    void run(const std::stop_token& stop);
    void step(Link& link);
    void connect(Link& link);
    void await(Link& link);
    void settle(Link& link, const local::Welcome& welcome);
    void tell(Link& link, bool is_last);
    void lose(Link& link, const std::string& why);

    const std::string& socket_path_;
    const Clock& clock_;
    std::vector<Link> links_;
    std::minstd_rand random_;
    std::jthread thread_;
};

}  // namespace stoker::attached
