#include "sidecar/files/files_program.h"

#include <random>
#include <utility>

#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "common/runtime/named_thread.h"

namespace stoker::files {

namespace {

constexpr std::string_view kProgram = "stoker-files";  // name told to the sidecar
constexpr Duration kLook = std::chrono::milliseconds{100};
constexpr Duration kTryAgain = std::chrono::seconds{1};

// Whether, as far as this process can see, retrying will not find the manifest intact.
bool is_gone(const Error& error) {
    return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kCorruption ||
           error.code == ErrorCode::kInvalidArgument;
}

}  // namespace

Result<std::unique_ptr<FilesProgram>> FilesProgram::start(
    const sidecar::SidecarConfig& config,
    const sidecar::Environment& environment,
    const Clock& clock,
    Limits limits) {
    std::unique_ptr<FilesProgram> program{new FilesProgram{config, clock, limits}};
    for (const sidecar::DatasetConfig& dataset : config.datasets) {
        if (!dataset.files_socket.empty()) {
            STOKER_TRY_VOID(program->add(dataset, environment, clock));
        }
    }
    if (program->datasets_.empty()) {
        return fail(ErrorCode::kInvalidArgument, "no dataset has a filesSocket: nothing to serve");
    }
    FilesProgram& self = *program;
    self.pool_ = std::make_unique<attached::FetchPool>(
        config.socket_path, clock, limits.fetch_threads, limits.fetch_bytes);
    self.links_ =
        std::make_unique<attached::SidecarLinks>(config.socket_path, self.datasets_, clock);
    for (std::size_t at = 0; at < self.datasets_.size(); ++at) {
        self.mounts_[at].link = std::make_unique<MountLink>(
            self.datasets_[at]->config().files_socket,
            [&self, at](UniqueFd descriptor, std::uint64_t revision) {
                self.on_mount(at, std::move(descriptor), revision);
            });
    }
    self.thread_ = start_thread("files", [&self](const std::stop_token& stop) { self.run(stop); });
    return program;
}

FilesProgram::FilesProgram(const sidecar::SidecarConfig& config, const Clock& clock, Limits limits)
    : config_(config),
      clock_(clock),
      limits_(limits) {}

// The thread uses the links, the servers use the pool, and the pool replies through the servers.
FilesProgram::~FilesProgram() {
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
    for (Mount& mount : mounts_) {
        mount.link.reset();
    }
    for (Mount& mount : mounts_) {
        if (mount.server != nullptr) {
            mount.server->stop();
        }
    }
    pool_.reset();
    links_.reset();
}

Status FilesProgram::add(
    const sidecar::DatasetConfig& dataset,
    const sidecar::Environment& environment,
    const Clock& clock) {
    Mount mount;
    STOKER_TRY(
        mount.origin,
        sidecar::make_origin(
            dataset.source.uri,
            sidecar::options_of(dataset.source),
            environment,
            clock,
            std::random_device{}()));
    datasets_.push_back(std::make_unique<attached::CachedDataset>(
        datasets_.size(), dataset, std::string{kProgram}, nullptr));
    mounts_.push_back(std::move(mount));
    return {};
}

void FilesProgram::on_mount(std::size_t index, UniqueFd descriptor, std::uint64_t revision) {
    const std::scoped_lock lock{mutex_};
    Mount& mount = mounts_[index];
    mount.revision = revision;
    mount.server = std::make_unique<FileServer>(
        std::move(descriptor),
        FileServer::Parts{
            *datasets_[index],
            *mount.origin,
            *pool_,
            clock_,
            limits_.copied_bytes / datasets_.size()},
        limits_.threads);
    log::info("serving a mount", {{"dataset", datasets_[index]->config().name}});
}

void FilesProgram::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            const std::scoped_lock lock{mutex_};
            for (std::size_t at = 0; at < datasets_.size(); ++at) {
                step(*datasets_[at], mounts_[at]);
            }
        }
        std::this_thread::sleep_for(kLook);  // the links offer no event to wait for
    }
}

void FilesProgram::step(attached::CachedDataset& dataset, Mount& mount) {
    if (mount.server == nullptr) {
        return;
    }
    if (mount.is_shown) {
        mount.server->tick();
        return;
    }
    if (auto files = files_of(dataset, mount)) {
        mount.revision = files->revision().value();
        mount.is_shown = true;
        // Done first, so that after a crash the next process shows the files that the kernel knows.
        mount.link->tell_revision(mount.revision);
        mount.server->show(std::move(files));
    }
}

// The kernel remembers names and numbers of files that a former process of this container has
// shown, so this process must show the same revision, whatever the sidecar serves now.
std::shared_ptr<attached::DatasetFiles> FilesProgram::files_of(
    attached::CachedDataset& dataset, Mount& mount) const {
    auto files = dataset.files();
    const std::uint64_t revision = mount.revision;
    if (revision == 0 || (files != nullptr && files->revision().value() == revision)) {
        return files;
    }
    if (clock_.now() < mount.next_try) {
        return nullptr;
    }
    mount.next_try = clock_.now() + kTryAgain;
    auto former = attached::DatasetFiles::open(
        domain::data_folder(dataset.config().directory),
        domain::RevisionId{revision},
        dataset.config().guest);
    if (former) {
        return *std::move(former);
    }
    on_failure(dataset, mount, former.error());
    return nullptr;
}

void FilesProgram::on_failure(
    const attached::CachedDataset& dataset, Mount& mount, const Error& error) {
    if (!std::exchange(mount.has_failed, true)) {
        log::error(
            "cannot show the revision that this mount has shown before: start the pod again",
            {{"dataset", dataset.config().name},
             {"revision", domain::to_string(domain::RevisionId{mount.revision})},
             {"error", error.message}});
    }
    if (is_gone(error)) {
        mount.server->refuse();
    }
}

}  // namespace stoker::files
