#include "sidecar/service/preparation.h"

#include <algorithm>
#include <utility>

#include <malloc.h>

#include "common/base/error.h"
#include "common/domain/chunk_format.h"
#include "common/log/log.h"

namespace stoker::sidecar {

namespace {

bool is_usable(const std::optional<CurrentRevision>& current, const PreparationOptions& options) {
    return current && current->source == options.source;
}

// Lists the origin. This node's last listing may save some reads; a manifest copied from a peer may
// not, because its mistakes would stay.
Result<domain::Listing> list_origin(
    Device& device,
    Origin& origin,
    const PreparationOptions& options,
    const std::optional<CurrentRevision>& current,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    if (is_usable(current, options) && !current->is_taken && !options.list_again) {
        if (const auto known = MappedManifest::open(device, options.directory, current->revision)) {
            return origin.list_again(known->view(), progress, stop);
        }
    }
    return origin.list(progress, stop);
}

Result<MappedManifest> list_anew(
    Device& device,
    Origin& origin,
    const PreparationOptions& options,
    const std::optional<CurrentRevision>& current,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    STOKER_TRY(auto listing, list_origin(device, origin, options, current, progress, stop));
    const auto manifest = domain::ManifestWriter::create(std::move(listing));
    if (!manifest) {
        return fail(manifest.error().prefixed(origin.describe()));
    }
    STOKER_TRY_VOID(store_manifest(device, options.directory, *manifest));
    const domain::RevisionId revision = manifest->revision();
    STOKER_TRY_VOID(save_current(
        device,
        options.directory,
        {revision, options.source, options.job_uid, options.attempt_uid, false, options.wall_now}));
    return MappedManifest::open(device, options.directory, revision);
}

// Removes manifests that are no longer used; clients that have one mapped keep their mapping.
void remove_other_manifests(
    Device& device, const std::string& directory, domain::RevisionId current) {
    const auto revisions = list_manifests(device, directory);
    if (!revisions) {
        return;
    }
    for (const auto revision : *revisions) {
        if (revision != current) {
            // A leftover that cannot be unlinked only costs some bytes.
            [[maybe_unused]] const auto unlinked =
                device.unlink(join_path(directory, "manifest." + domain::to_string(revision)));
        }
    }
}

Result<MappedManifest> use_taken(Device& device, const PreparationOptions& options) {
    STOKER_TRY(
        auto manifest, MappedManifest::open(device, options.directory, options.taken->revision));
    STOKER_TRY_VOID(save_current(device, options.directory, *options.taken));
    return manifest;
}

// A listing that another attempt made becomes ours, too, so a restart of this sidecar finds it.
void adopt(Device& device, const PreparationOptions& options, const CurrentRevision& current) {
    if (current.attempt_uid == options.attempt_uid || options.attempt_uid.empty()) {
        return;
    }
    // A full disk costs another listing after a restart.
    [[maybe_unused]] const auto saved = save_current(
        device, options.directory, adopted_by(current, options.job_uid, options.attempt_uid));
}

Result<MappedManifest> find_manifest(
    Device& device,
    Origin& origin,
    const PreparationOptions& options,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop,
    Preparation::Source& source) {
    if (options.taken) {
        source = Preparation::Source::kTaken;
        return use_taken(device, options);
    }
    const auto current = load_current(device, options.directory);
    const bool usable = is_usable(current, options);
    if (is_reusable(current, options) || (options.use_young && is_young(current, options))) {
        if (auto manifest = MappedManifest::open(device, options.directory, current->revision)) {
            adopt(device, options, *current);
            return manifest;
        }
    }
    auto listed = list_anew(device, origin, options, current, progress, stop);
    // Returns the listing's memory to the system: about 90 bytes a sample, which malloc would keep.
    ::malloc_trim(0);
    source = listed ? Preparation::Source::kListed : Preparation::Source::kKept;
    // Another job's listing does not prove that ours may read; without jobs there is only one user.
    const bool may_keep = usable && options.job_uid.empty() && !options.listing_age_max;
    if (listed || !may_keep || !is_retryable(listed.error().code)) {
        return listed;
    }
    auto manifest = MappedManifest::open(device, options.directory, current->revision);
    if (!manifest) {
        return listed;
    }
    log::warning(
        "the origin cannot be listed; using this node's last listing",
        {{"source", options.source},
         {"revision", domain::to_string(current->revision)},
         {"error", listed.error().message}});
    return manifest;
}

std::vector<std::pair<SampleIndex, domain::SegmentClass>> find_stored(
    const NodeStore& store, std::uint64_t sample_count) {
    std::vector<std::pair<SampleIndex, domain::SegmentClass>> stored;
    for (std::uint64_t id = 0; id < sample_count; ++id) {
        if (const auto where = store.find(domain::SampleId{id})) {
            stored.emplace_back(static_cast<SampleIndex>(id), where->segment_class);
        }
    }
    return stored;
}

// The chunks that the samples' ETags name; empty if an ETag names none. Every chunk has a sample,
// so its number is below the number of samples.
SampleChunks find_chunks(const domain::ManifestView& manifest) {
    std::vector<std::uint32_t> chunk_of;
    for (std::uint64_t id = 0; id < manifest.sample_count(); ++id) {
        const auto place = domain::parse_place(manifest.sample(domain::SampleId{id}).etag);
        if (!place || place->chunk >= manifest.sample_count()) {
            return {};
        }
        chunk_of.push_back(place->chunk);
    }
    return {std::move(chunk_of), manifest};
}

}  // namespace

bool is_reusable(const std::optional<CurrentRevision>& current, const PreparationOptions& options) {
    return is_usable(current, options) &&
           (options.keep_revision || (current->is_of(options.attempt_uid) && !options.list_again));
}

bool is_young(const std::optional<CurrentRevision>& current, const PreparationOptions& options) {
    const auto age = is_usable(current, options) && !options.list_again
                         ? age_of(*current, options.wall_now)
                         : std::nullopt;
    return age && options.listing_age_max && *age < *options.listing_age_max;
}

SegmentSizes segment_sizes(Bytes total, Bytes window) {
    constexpr std::uint64_t kOfDisk = 64;
    constexpr std::uint64_t kOfWindow = 16;
    const StoreOptions usual;
    const auto clamped = [](std::uint64_t bytes, Bytes least, Bytes most) {
        return Bytes{std::clamp(bytes, least.count(), most.count())};
    };
    return {
        clamped(total.count() / kOfDisk, mib(1), usual.segment_bytes),
        clamped(window.count() / kOfWindow, kib(128), usual.window_segment_bytes)};
}

Result<Preparation> prepare_dataset(
    Device& device,
    Origin& origin,
    const PreparationOptions& options,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    Preparation prepared;
    STOKER_TRY(
        auto manifest, find_manifest(device, origin, options, progress, stop, prepared.source));
    prepared.current = load_current(device, options.directory).value_or(CurrentRevision{});
    prepared.manifest = std::make_shared<const MappedManifest>(std::move(manifest));
    const domain::ManifestView& view = prepared.manifest->view();
    remove_other_manifests(device, options.directory, view.revision());
    StoreOptions store = options.store;
    store.directory = options.directory;
    store.control_directory = options.control_directory;
    STOKER_TRY(const auto space, device.space(options.directory));
    const SegmentSizes sizes = segment_sizes(space.total, options.window_bytes);
    store.segment_bytes = sizes.resident;
    store.window_segment_bytes = sizes.window;
    STOKER_TRY(prepared.store, NodeStore::open(device, view, store));
    prepared.stored = find_stored(*prepared.store, view.sample_count());
    prepared.chunks = find_chunks(view);
    if (options.marks) {
        prepared.marks = domain::mark_manifest(view);
    }
    return prepared;
}

}  // namespace stoker::sidecar
