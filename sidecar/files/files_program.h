#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "sidecar/attached/cached_dataset.h"
#include "sidecar/attached/fetch_pool.h"
#include "sidecar/attached/sidecar_links.h"
#include "sidecar/config/sidecar_config.h"
#include "sidecar/files/file_server.h"
#include "sidecar/files/mount_link.h"
#include "sidecar/origin/make_origin.h"
#include "sidecar/origin/origin.h"

namespace stoker::files {

// All datasets of a pod that are shown as files: those with a filesSocket in the settings.
class FilesProgram {
public:
    struct Limits {
        std::size_t fetch_threads = 16;
        std::uint64_t fetch_bytes = std::uint64_t{128} << 20U;  // bytes of all fetches in flight
        std::uint64_t copied_bytes = std::uint64_t{64} << 20U;  // of copies for later reads
        std::size_t threads = 2;                                // per mount
    };

    // `config` and `clock` must outlive it. kInvalidArgument: an origin's settings are wrong, or no
    // dataset has a filesSocket.
    static Result<std::unique_ptr<FilesProgram>> start(
        const sidecar::SidecarConfig& config,
        const sidecar::Environment& environment,
        const Clock& clock,
        Limits limits);
    FilesProgram(const FilesProgram&) = delete;
    FilesProgram& operator=(const FilesProgram&) = delete;
    ~FilesProgram();

private:
    struct Mount {
        std::unique_ptr<sidecar::Origin> origin;
        std::unique_ptr<FileServer> server;  // guarded by mutex_; unset before the mount
        std::uint64_t revision = 0;          // the mount must show it; 0: the first one known
        bool is_shown = false;
        bool has_failed = false;  // opening the revision failed; logged once
        TimePoint next_try{};
        std::unique_ptr<MountLink> link;
    };

    FilesProgram(const sidecar::SidecarConfig& config, const Clock& clock, Limits limits);

    Status add(
        const sidecar::DatasetConfig& dataset,
        const sidecar::Environment& environment,
        const Clock& clock);
    void on_mount(std::size_t index, UniqueFd descriptor, std::uint64_t revision);
    void run(const std::stop_token& stop);
    void step(attached::CachedDataset& dataset, Mount& mount);
    // The files that the mount must show; nullptr: not known yet.
    [[nodiscard]] std::shared_ptr<attached::DatasetFiles> files_of(
        attached::CachedDataset& dataset, Mount& mount) const;
    // Called if the files that the mount has shown before cannot be opened.
    static void on_failure(
        const attached::CachedDataset& dataset, Mount& mount, const Error& error);

    const sidecar::SidecarConfig& config_;
    const Clock& clock_;
    Limits limits_;
    std::vector<std::unique_ptr<attached::CachedDataset>> datasets_;
    std::mutex mutex_;
    std::vector<Mount> mounts_;  // by the dataset's index
    std::unique_ptr<attached::FetchPool> pool_;
    std::unique_ptr<attached::SidecarLinks> links_;
    std::jthread thread_;
};

}  // namespace stoker::files
