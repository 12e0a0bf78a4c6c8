#include "sidecar/store/residency_file.h"

#include <atomic>

#include "common/base/check.h"
#include "common/domain/node_directory.h"

namespace stoker::sidecar {

namespace {

// Other processes map the table, so its words must be lock-free memory.
static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);
static_assert(domain::kResidencyHeaderBytes % alignof(std::uint64_t) == 0);

bool is_table_of(const DeviceMapping& mapping, const domain::ResidencyHeader& header) {
    const auto found = domain::decode_residency_header(mapping.bytes());
    return found.has_value() && *found == header &&
           mapping.bytes().size() == domain::residency_file_bytes(header.sample_count);
}

Status create_table(
    Device& device, const std::string& path, const domain::ResidencyHeader& header) {
    const std::string temporary = path + ".tmp";
    if (const Status old = device.unlink(temporary);
        !old.has_value() && old.error().code != ErrorCode::kNotFound) {
        return old;
    }
    STOKER_TRY(const auto file, device.create(temporary));
    STOKER_TRY_VOID(file->allocate(domain::residency_file_bytes(header.sample_count)));
    const auto bytes = domain::encode_residency_header(header);
    const std::array<DeviceFile::ConstBuffer, 1> parts{bytes};
    STOKER_TRY_VOID(file->write(0, parts));
    return device.rename(temporary, path);
}

}  // namespace

Result<std::unique_ptr<ResidencyFile>> ResidencyFile::open(
    Device& device, const std::string& directory, const domain::ResidencyHeader& header) {
    const auto path = join_path(directory, domain::residency_file(header.revision));
    auto mapping = device.map(path, MapMode::kReadWrite);
    const bool existed = mapping.has_value() && is_table_of(**mapping, header);
    if (!existed) {
        // Replaces only an invalid file, because readers may have the old one mapped.
        if (!mapping.has_value() && mapping.error().code != ErrorCode::kNotFound &&
            mapping.error().code != ErrorCode::kCorruption) {
            return fail(std::move(mapping).error());
        }
        STOKER_TRY_VOID(create_table(device, path, header));
        mapping = device.map(path, MapMode::kReadWrite);
    }
    if (!mapping.has_value()) {
        return fail(std::move(mapping).error());
    }
    return std::unique_ptr<ResidencyFile>{
        new ResidencyFile(*std::move(mapping), header.sample_count, existed)};
}

std::uint64_t& ResidencyFile::word(domain::SampleId sample) const {
    STOKER_CHECK(sample.value() < sample_count_, "sample id is outside the residency table");
    std::byte* at = mapping_->writable_bytes().data() + domain::kResidencyHeaderBytes +
                    sample.value() * sizeof(std::uint64_t);
    // Aligned: a map begins at a page boundary, and the header is 64 bytes long.
    return *reinterpret_cast<std::uint64_t*>(at);
}

std::uint64_t ResidencyFile::load(domain::SampleId sample) const {
    return std::atomic_ref{word(sample)}.load(std::memory_order_acquire);
}

void ResidencyFile::store(domain::SampleId sample, std::uint64_t word_value) {
    std::atomic_ref{word(sample)}.store(word_value, std::memory_order_release);
}

}  // namespace stoker::sidecar
