#include "sidecar/attached/cached_dataset.h"

#include <utility>

#include <sys/stat.h>

#include "common/domain/node_directory.h"
#include "common/domain/residency_word.h"
#include "common/log/log.h"

namespace stoker::attached {

namespace {

constexpr std::size_t kWrittenKeysMax = 65536;
constexpr std::size_t kUntoldHitsMax = 65536;

}  // namespace

DatasetFiles::DatasetFiles(
    std::unique_ptr<client::NodeReader> reader,
    std::string directory,
    domain::RevisionId revision,
    bool guest)
    : reader_(std::move(reader)),
      directory_(std::move(directory)),
      revision_(revision),
      guest_(guest) {}

Result<std::shared_ptr<DatasetFiles>> DatasetFiles::open(
    std::string directory, domain::RevisionId revision, bool guest) {
    client::NodeReaderOptions options;
    options.directory = directory;
    options.revision = revision;
    options.guest = guest;
    STOKER_TRY(auto reader, client::NodeReader::open(std::move(options)));
    std::shared_ptr<DatasetFiles> files{
        new DatasetFiles{std::move(reader), std::move(directory), revision, guest}};

    struct stat status {};

    const std::string manifest = files->directory_ + "/manifest." + domain::to_string(revision);
    if (::stat(manifest.c_str(), &status) == 0) {
        files->modified_ = std::chrono::sys_seconds{std::chrono::seconds{status.st_mtime}};
    }
    return files;
}

std::optional<DatasetFiles::Found> DatasetFiles::read_checked(domain::SampleId id) {
    std::optional<client::Location> where;
    {
        const std::scoped_lock lock{mutex_};
        where = reader_->locate(id);
        if (!where || !reader_->is_checked(id, *where)) {
            return std::nullopt;
        }
    }
    return check(id, *std::move(where));
}

std::optional<DatasetFiles::Found> DatasetFiles::read(domain::SampleId id) {
    std::optional<client::Location> where;
    {
        const std::scoped_lock lock{mutex_};
        where = reader_->locate(id);
    }
    return where ? check(id, *std::move(where)) : std::nullopt;
}

std::optional<DatasetFiles::Found> DatasetFiles::check(
    domain::SampleId id, client::Location where) {
    const auto residency = domain::unpack_residency(where.word);
    auto view = reader_->check(id, std::move(where));
    if (!view || !residency) {
        return std::nullopt;
    }
    const bool is_kept = residency->segment_class == domain::SegmentClass::kResident;
    Found found{*std::move(view), std::nullopt, is_kept};
    if (!guest_) {
        found.record_offset = residency->record_offset;
    }
    return found;
}

void DatasetFiles::refresh() {
    const std::scoped_lock lock{mutex_};
    if (const auto status = reader_->refresh(); !status) {
        log::warning("the residency table cannot be read", {{"error", status.error().message}});
    }
}

void DatasetFiles::retire_unlinked(std::size_t checks) {
    const std::scoped_lock lock{mutex_};
    reader_->retire_unlinked(checks);
}

CachedDataset::CachedDataset(
    std::size_t index,
    const sidecar::DatasetConfig& config,
    std::string client,
    std::unique_ptr<sidecar::Origin> origin)
    : index_(index),
      config_(config),
      client_(std::move(client)),
      origin_(std::move(origin)) {}

std::shared_ptr<DatasetFiles> CachedDataset::files() {
    return *files_.lock();
}

void CachedDataset::set_files(std::shared_ptr<DatasetFiles> files) {
    std::swap(*files_.lock(), files);
}

void CachedDataset::note_written(const std::string& key) {
    const auto writes = writes_.lock();
    writes->is_overflowing = writes->is_overflowing || writes->keys.size() >= kWrittenKeysMax;
    if (!writes->is_overflowing) {
        writes->keys.insert(key);
    }
    has_writes_.store(true, std::memory_order_release);
}

bool CachedDataset::is_written(const std::string& key) {
    if (!has_writes()) {
        return false;
    }
    const auto writes = writes_.lock();
    return writes->is_overflowing || writes->keys.contains(key);
}

void CachedDataset::count_hit(domain::SampleId id, std::uint64_t bytes, bool was_begun) {
    const auto told = told_.lock();
    told->counts.bytes += bytes;
    if (was_begun) {
        ++told->counts.hits;
        if (told->hits.size() < kUntoldHitsMax) {
            told->hits.push_back(id.value());
        }
    }
}

void CachedDataset::count_fetched(std::uint64_t bytes, bool was_begun) {
    const auto told = told_.lock();
    told->counts.bytes += bytes;
    told->counts.fetched += was_begun ? 1 : 0;
}

void CachedDataset::count_forwarded() {
    ++told_.lock()->counts.forwarded;
}

ReadCounts CachedDataset::counts() {
    return told_.lock()->counts;
}

std::vector<std::uint64_t> CachedDataset::take_hits() {
    return std::exchange(told_.lock()->hits, {});
}

}  // namespace stoker::attached
