#include "common/domain/manifest_rules.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "common/domain/range_place.h"

namespace stoker::domain {

namespace {

Error wrong(const char* what, SampleId id) {
    return {ErrorCode::kCorruption, fmt::format("manifest has {} at sample {}", what, id.value())};
}

// Checks that each sample has its folder's label, and that the labels are sorted and all used.
class LabelCheck {
public:
    explicit LabelCheck(const ManifestView& manifest)
        : manifest_(manifest),
          used_(manifest.label_count()) {}

    bool take(const SampleInfo& sample) {
        const std::string_view folder = label_folder(sample.key, sample.etag);
        if (folder.empty() || sample.label < 0) {
            return folder.empty() && sample.label == kNoLabel;
        }
        const auto label = static_cast<std::uint32_t>(sample.label);
        if (label >= used_.size() || manifest_.label_name(label) != folder) {
            return false;
        }
        used_[label] = true;
        return true;
    }

    [[nodiscard]] bool is_complete() const {
        for (std::uint32_t label = 1; label < used_.size(); ++label) {
            if (manifest_.label_name(label - 1) >= manifest_.label_name(label)) {
                return false;
            }
        }
        return std::ranges::count(used_, false) == 0;
    }

private:
    const ManifestView& manifest_;
    std::vector<bool> used_;
};

}  // namespace

bool is_plain_key(std::string_view key) {
    while (true) {
        const auto slash = key.find('/');
        const std::string_view part = key.substr(0, slash);
        if (part.empty() || part == "." || part == ".." ||
            part.find('\0') != std::string_view::npos) {
            return false;
        }
        if (slash == std::string_view::npos) {
            return true;
        }
        key.remove_prefix(slash + 1);
    }
}

std::string_view label_folder(std::string_view key, std::string_view etag) {
    if (const auto place = parse_range_place(key, etag)) {
        key = place->name(key);
    }
    const auto slash = key.rfind('/');
    if (slash == std::string_view::npos) {
        return {};
    }
    const std::string_view folders = key.substr(0, slash);
    const auto before = folders.rfind('/');
    return before == std::string_view::npos ? folders : folders.substr(before + 1);
}

Status check_manifest(const ManifestView& manifest) {
    if (manifest.sample_count() == 0 || manifest.label_count() > manifest.sample_count()) {
        return fail(ErrorCode::kCorruption, "manifest has no samples, or too many labels");
    }
    LabelCheck labels{manifest};
    ManifestDigest digest;
    Bytes total{};
    std::uint64_t largest = 0;
    std::string_view last_key;
    for (SampleId id{0}; id.value() < manifest.sample_count(); id = SampleId{id.value() + 1}) {
        const SampleInfo sample = manifest.sample(id);
        if (!is_plain_key(sample.key) || sample.key <= last_key) {
            return fail(wrong("a key out of order or not below the root", id));
        }
        if (sample.etag.empty() || !labels.take(sample)) {
            return fail(wrong("no ETag or a wrong label", id));
        }
        last_key = sample.key;
        digest.add(sample.key);
        digest.add(sample.size_bytes);
        digest.add(sample.etag);
        total = total + Bytes{sample.size_bytes};
        largest = std::max(largest, sample.size_bytes);
    }
    if (!labels.is_complete() || total != manifest.total_bytes() ||
        largest != manifest.largest_sample_bytes()) {
        return fail(ErrorCode::kCorruption, "manifest has wrong labels or totals");
    }
    if (RevisionId{digest.value()} != manifest.revision()) {
        return fail(ErrorCode::kCorruption, "manifest has another revision than its samples");
    }
    return {};
}

}  // namespace stoker::domain
