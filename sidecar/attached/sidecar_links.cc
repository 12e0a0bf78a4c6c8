#include "sidecar/attached/sidecar_links.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"

namespace stoker::attached {

namespace {

constexpr Duration kTick = std::chrono::milliseconds{50};
constexpr Duration kConnectTimeout = std::chrono::seconds{5};
constexpr Duration kFirstDelay = std::chrono::milliseconds{50};
constexpr Duration kDelayMax = std::chrono::seconds{3};
constexpr Duration kReportInterval = std::chrono::seconds{2};
constexpr std::size_t kRetireChecks = 64;  // mapped segments checked in each tick
constexpr std::size_t kConsumedPerFrame = 4096;

// Opens the node directory's data at the path that the sidecar gives its clients, or else below the
// configured directory, for a container that mounts it at the same path as the sidecar.
Result<std::shared_ptr<DatasetFiles>> open_files(
    const CachedDataset& dataset, const local::Welcome& welcome) {
    const domain::RevisionId revision{welcome.revision};
    const bool is_guest = dataset.config().guest;
    auto files = DatasetFiles::open(welcome.directory, revision, is_guest);
    const std::string own = domain::data_folder(dataset.config().directory);
    if (!files && own != welcome.directory) {
        if (auto again = DatasetFiles::open(own, revision, is_guest)) {
            return again;
        }
    }
    return files;
}

}  // namespace

local::Hello hello_for(const CachedDataset& dataset) {
    local::Hello hello;
    hello.dataset = dataset.config().name;
    hello.client = dataset.client();
    return hello;
}

SidecarLinks::SidecarLinks(
    const std::string& socket_path,
    const std::vector<std::unique_ptr<CachedDataset>>& datasets,
    const Clock& clock)
    : socket_path_(socket_path),
      clock_(clock),
      random_(std::random_device{}()) {
    for (const auto& dataset : datasets) {
        Link& link = links_.emplace_back();
        link.dataset = dataset.get();
        link.delay = kFirstDelay;
    }
    thread_ = start_thread("links", [this](const std::stop_token& stop) { run(stop); });
}

SidecarLinks::~SidecarLinks() {
    thread_.request_stop();
    thread_.join();
    for (Link& link : links_) {
        if (link.is_welcome) {
            tell(link, true);
        }
    }
}

void SidecarLinks::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        for (Link& link : links_) {
            step(link);
        }
        std::this_thread::sleep_for(kTick);  // the client library offers no event to wait for
    }
}

void SidecarLinks::step(Link& link) {
    if (!link.client) {
        if (clock_.now() >= link.not_before) {
            connect(link);
        }
        return;
    }
    if (!link.is_welcome) {
        await(link);
        return;
    }
    if (link.client->has_answer()) {  // unasked data cannot come, so this is a hang-up
        lose(link, "the sidecar hung up");
        return;
    }
    link.dataset->set_attached(true);  // a fetch that found no sidecar has cleared it
    if (const auto files = link.dataset->files()) {
        files->retire_unlinked(kRetireChecks);
        files->recent().drop_old(clock_.now());
    }
    tell(link, false);
}

void SidecarLinks::connect(Link& link) {
    auto client = client::SidecarClient::connect(
        socket_path_, hello_for(*link.dataset), clock_, clock_.now() + kConnectTimeout);
    if (!client) {
        lose(link, client.error().message);
        return;
    }
    link.client.emplace(*std::move(client));
}

void SidecarLinks::await(Link& link) {
    while (link.client && !link.is_welcome && link.client->has_answer()) {
        auto answer = link.client->await_welcome(clock_.now() + kConnectTimeout);
        if (!answer) {
            lose(link, answer.error().message);
        } else if (const auto* welcome = std::get_if<local::Welcome>(&*answer)) {
            settle(link, *welcome);
        }
    }
}

void SidecarLinks::settle(Link& link, const local::Welcome& welcome) {
    const auto known = link.dataset->files();
    if (known != nullptr && known->revision().value() == welcome.revision) {
        known->refresh();
    } else {
        auto files = open_files(*link.dataset, welcome);
        if (!files) {
            lose(link, files.error().message);
            return;
        }
        link.dataset->set_files(*std::move(files));
    }
    link.is_welcome = link.was_attached = true;
    link.delay = kFirstDelay;
    link.dataset->set_attached(true);
    log::info(
        "attached to the sidecar",
        {{"dataset", link.dataset->config().name}, {"samples", welcome.sample_count}});
}

// Sends reads at once, counters every other second; keeps what a busy sidecar does not accept.
void SidecarLinks::tell(Link& link, bool is_last) {
    const auto hits = link.dataset->take_hits();
    for (std::size_t at = 0; at < hits.size(); at += kConsumedPerFrame) {
        const auto part =
            std::span{hits}.subspan(at, std::min(kConsumedPerFrame, hits.size() - at));
        if (!link.client->send_consumed(0, part)) {
            lose(link, "the connection broke");
            return;
        }
    }
    if (!is_last && clock_.now() < link.report_due) {
        return;
    }
    link.report_due = clock_.now() + kReportInterval;
    const ReadCounts now = link.dataset->counts();
    local::Report report;
    report.hit_samples = now.hits - link.told.hits;
    report.origin_samples = now.forwarded - link.told.forwarded;
    report.samples = report.hit_samples + report.origin_samples + now.fetched - link.told.fetched;
    report.bytes = now.bytes - link.told.bytes;
    if (report.samples == 0 && report.bytes == 0) {
        return;
    }
    const auto sent = link.client->send_report(report);
    if (!sent) {
        lose(link, sent.error().message);
    } else if (*sent) {
        link.told = now;
    }
}

void SidecarLinks::lose(Link& link, const std::string& why) {
    link.client.reset();
    link.dataset->set_attached(false);
    if (link.was_attached || link.delay == kFirstDelay) {
        log::warning(
            "no sidecar: samples on this node are served from its files, others from the origin",
            {{"dataset", link.dataset->config().name}, {"why", why}});
    }
    link.is_welcome = link.was_attached = false;
    const double part = std::uniform_real_distribution{0.5, 1.0}(random_);
    link.not_before = clock_.now() + std::chrono::duration_cast<Duration>(link.delay * part);
    link.delay = std::min<Duration>(link.delay * 2, kDelayMax);
}

}  // namespace stoker::attached
