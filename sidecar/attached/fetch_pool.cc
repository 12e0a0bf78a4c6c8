#include "sidecar/attached/fetch_pool.h"

#include <array>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/log/log.h"
#include "common/runtime/named_thread.h"
#include "sidecar/attached/sidecar_links.h"
#include "sidecar/origin/fetch_all.h"

namespace stoker::attached {

namespace {

constexpr Duration kConnectTimeout = std::chrono::seconds{5};
constexpr Duration kFetchTimeout = std::chrono::seconds{30};
constexpr int kFetchRounds = 3;  // the sidecar fetches a damaged record anew, once verified

std::optional<DatasetFiles::Found> read_at_origin(
    sidecar::Origin& origin, const DatasetFiles& files, domain::SampleId id) {
    const domain::SampleInfo sample = files.manifest().sample(id);
    auto bytes = sidecar::fetch_one(
        origin, {std::string{sample.key}, std::string{sample.etag}, sample.size_bytes}, {});
    if (!bytes) {
        log::warning("the origin did not deliver a sample", {{"error", bytes.error().message}});
        return std::nullopt;
    }
    const auto held = std::make_shared<const std::vector<std::byte>>(std::move(bytes->payload));
    return DatasetFiles::Found{{*held, held, {}}, std::nullopt, false};
}

// Waits for the Welcome; skips messages about a running listing that may precede it.
std::optional<local::Welcome> await_welcome(client::SidecarClient& client, TimePoint deadline) {
    while (true) {
        auto answer = client.await_welcome(deadline);
        if (!answer) {
            return std::nullopt;
        }
        if (auto* welcome = std::get_if<local::Welcome>(&*answer)) {
            return std::move(*welcome);
        }
    }
}

}  // namespace

FetchPool::FetchPool(
    const std::string& socket_path,
    const Clock& clock,
    std::size_t thread_count,
    std::uint64_t memory_bytes_max)
    : socket_path_(socket_path),
      clock_(clock),
      memory_bytes_max_(memory_bytes_max) {
    for (std::size_t at = 0; at < thread_count; ++at) {
        threads_.push_back(
            start_thread(fmt::format("fetch-{}", at), [this](const auto&) { run(); }));
    }
}

FetchPool::~FetchPool() {
    {
        const std::scoped_lock lock{mutex_};
        is_stopping_ = true;
    }
    wake_.notify_all();
    threads_.clear();
    while (!jobs_.empty()) {
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        job.on_done({});  // the callback may request the next part
    }
}

void FetchPool::get(
    CachedDataset& dataset,
    std::shared_ptr<DatasetFiles> files,
    domain::SampleId id,
    std::uint64_t range_bytes,
    OnDone on_done,
    std::uint64_t memory_bytes) {
    {
        const std::scoped_lock lock{mutex_};
        jobs_.push_back(
            {&dataset, std::move(files), id, range_bytes, std::move(on_done), memory_bytes});
    }
    wake_.notify_one();
}

bool FetchPool::is_ready() const {
    const bool is_full = memory_bytes_ > memory_bytes_max_;
    return !jobs_.empty() &&
           (memory_bytes_ == 0 ||
            (!is_full && jobs_.front().memory_bytes <= memory_bytes_max_ - memory_bytes_));
}

void FetchPool::run() {
    Lanes lanes;
    while (true) {
        std::unique_lock lock{mutex_};
        wake_.wait(lock, [this] { return is_stopping_ || is_ready(); });
        if (is_stopping_) {
            return;
        }
        Job job = std::move(jobs_.front());
        jobs_.pop_front();
        const std::uint64_t memory_bytes = job.memory_bytes;
        memory_bytes_ += memory_bytes;
        lock.unlock();
        finish(lanes, std::move(job));
        lock.lock();
        memory_bytes_ -= memory_bytes;
        if (!jobs_.empty()) {
            wake_.notify_all();
        }
    }
}

// Answers the job. Frees everything that the job holds before this function returns.
void FetchPool::finish(Lanes& lanes, Job&& job) {
    const Job taken = std::move(job);
    taken.on_done(answer(lanes, taken));
}

FetchPool::Answer FetchPool::answer(Lanes& lanes, const Job& job) {
    if (auto found = job.files->read(job.id)) {
        return {std::move(found), "hit"};
    }
    if (auto view = job.files->recent().take_range(job.id, job.range_bytes, clock_.now())) {
        return {DatasetFiles::Found{*std::move(view), std::nullopt, false}, "fetched"};
    }
    if (auto found = fetch(lanes, job)) {
        if (!found->is_kept && job.range_bytes < found->view.bytes.size()) {
            job.files->recent().keep(job.id, found->view.bytes, job.range_bytes, clock_.now());
        }
        return {std::move(found), "fetched"};
    }
    if (job.dataset->origin() != nullptr) {
        return {read_at_origin(*job.dataset->origin(), *job.files, job.id), "origin"};
    }
    return {};
}

// Whether the sidecar may be asked. A sample larger than the sidecar's memory takes minutes, as a
// whole: its ranges are read at the origin until another reader has caused its fetch.
bool FetchPool::may_ask(const Job& job) {
    return Bytes{job.files->manifest().size_bytes(job.id)} <= job.dataset->config().memory_bytes;
}

std::optional<DatasetFiles::Found> FetchPool::fetch(Lanes& lanes, const Job& job) {
    if (!may_ask(job)) {
        return std::nullopt;
    }
    const std::array wanted{job.id.value()};
    for (int round = 0; round < kFetchRounds; ++round) {
        client::SidecarClient* client = lane(lanes, job);
        if (client == nullptr) {
            return std::nullopt;
        }
        const auto fetched = client->fetch(wanted, clock_.now() + kFetchTimeout);
        if (!fetched && fetched.error().code == ErrorCode::kUnavailable) {
            continue;  // this connection broke; it may have led to a former sidecar
        }
        if (!fetched && fetched.error().code == ErrorCode::kDeadlineExceeded) {
            job.dataset->set_attached(false);
        }
        if (!fetched || fetched->statuses.size() != 1 ||
            fetched->statuses.front() != local::FetchStatus::kReady) {
            return std::nullopt;
        }
        if (auto found = job.files->read(job.id)) {
            [[maybe_unused]] const auto told = client->send_consumed(0, wanted);
            return found;
        }
        job.files->refresh();  // the leader may have written a new table
    }
    return std::nullopt;
}

// A connection to the sidecar that serves the job's revision; nullptr: there is none now.
client::SidecarClient* FetchPool::lane(Lanes& lanes, const Job& job) {
    if (!job.dataset->is_attached()) {
        return nullptr;
    }
    if (lanes.size() <= job.dataset->index()) {
        lanes.resize(job.dataset->index() + 1);
    }
    auto& client = lanes[job.dataset->index()];
    if (client && client->is_usable()) {
        return &*client;
    }
    client.reset();
    const TimePoint deadline = clock_.now() + kConnectTimeout;
    auto connected =
        client::SidecarClient::connect(socket_path_, hello_for(*job.dataset), clock_, deadline);
    if (!connected) {
        job.dataset->set_attached(false);
        return nullptr;
    }
    const auto welcome = await_welcome(*connected, deadline);
    if (!welcome || welcome->revision != job.files->revision().value()) {
        return nullptr;
    }
    return &client.emplace(*std::move(connected));
}

}  // namespace stoker::attached
