#include "sidecar/service/preparer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/domain/node_directory.h"
#include "common/log/log.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kListingPatience = std::chrono::seconds{30};
constexpr Duration kRetryMin = std::chrono::seconds{1};
constexpr Duration kRetryMax = std::chrono::seconds{30};

std::int64_t seconds_of(Duration duration) {
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

PreparationOptions preparation_options(
    const SidecarParts& parts, const DatasetConfig& config, const Origin& origin) {
    PreparationOptions options;
    options.directory = domain::data_folder(config.directory);
    options.control_directory = domain::control_folder(config.directory);
    options.source = origin.describe();
    options.job_uid = parts.job_uid;
    options.attempt_uid = parts.attempt_uid;
    options.marks = config.pinned;
    options.window_bytes = config.window_bytes;
    options.store.reserved_free = config.reserved_free;
    options.store.boot_id = parts.boot_id;
    return options;
}

}  // namespace

Preparer::Preparer(
    const SidecarParts& parts,
    const DatasetConfig& config,
    Origin& origin,
    bool keep_revision,
    Callbacks callbacks)
    : parts_(parts),
      config_(config),
      origin_(origin),
      callbacks_(std::move(callbacks)),
      options_(preparation_options(parts, config, origin)),
      objects_listed_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      retry_delay_(kRetryMin),
      stall_(kListingPatience),
      timer_(parts.loop),
      tasks_(parts.loop) {
    options_.keep_revision = keep_revision;
    start();
}

Preparer::~Preparer() {
    stop();
}

void Preparer::start() {
    failed_ = false;
    is_running_ = true;
    *objects_listed_ = 0;
    stall_.begin(parts_.loop.now());
    worker_ = parts_.make_workers("prepare", 1);
    worker_->post([this, options = options_, stop = stop_.get_token()] {
        auto prepared = std::make_shared<Result<Preparation>>(prepare_dataset(
            parts_.device,
            origin_,
            options,
            [count = objects_listed_](std::uint64_t objects) { *count = objects; },
            stop));
        tasks_.post([this, prepared] { on_prepared(std::move(*prepared)); });
    });
}

void Preparer::list_again() {
    options_.list_again = true;
    start();
}

void Preparer::stop() {
    stopped_ = true;
    timer_.cancel();
    stop_.request_stop();
    worker_.reset();
}

void Preparer::on_prepared(Result<Preparation> prepared) {
    is_running_ = false;
    worker_.reset();
    if (stopped_) {
        return;
    }
    if (prepared) {
        callbacks_.ready(*std::move(prepared));
        return;
    }
    failed_ = true;
    error_ = prepared.error();
    log::warning(
        "dataset cannot be served yet",
        {{"dataset", config_.name},
         {"code", to_string(error_.code)},
         {"error", error_.message},
         {"retry_seconds", seconds_of(retry_delay_)}});
    timer_.run_in(retry_delay_, [this] { start(); });
    retry_delay_ = std::min(retry_delay_ * 2, kRetryMax);
    callbacks_.failed();
}

void Preparer::look() {
    const Duration silence =
        is_running_ ? stall_.look(parts_.loop.now(), *objects_listed_) : Duration{};
    if (silence == Duration{}) {
        return;
    }
    const bool is_news = error_.code != ErrorCode::kDeadlineExceeded;
    error_ = {
        ErrorCode::kDeadlineExceeded,
        fmt::format(
            "{} has said nothing for {} s while it is listed, after {} objects",
            origin_.describe(),
            seconds_of(silence),
            objects_listed())};
    if (is_news) {
        log::warning(
            "the listing stands still", {{"dataset", config_.name}, {"error", error_.message}});
    }
}

}  // namespace stoker::sidecar
