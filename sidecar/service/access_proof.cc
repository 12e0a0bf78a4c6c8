#include "sidecar/service/access_proof.h"

#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "common/domain/http_uri.h"
#include "common/domain/node_directory.h"
#include "common/log/log.h"
#include "sidecar/service/current_revision.h"
#include "sidecar/store/manifest_file.h"

namespace stoker::sidecar {

namespace {

constexpr Duration kAskAgain = std::chrono::seconds{5};
constexpr std::uint64_t kLooked = 4096;             // samples among which the smallest is chosen
constexpr std::uint64_t kProofBytesMax = 64 << 10;  // bytes to read of that sample

// The object to read. nullopt: none, because our own job listed the revision with our key.
using Finding = Result<std::optional<OriginFetch>>;

Finding find_smallest(
    Device& device,
    const std::string& data,
    domain::RevisionId revision,
    const std::string& source,
    const std::string& job_uid) {
    const auto current = load_current(device, data);
    if (current && current->revision == revision && current->source == source && !job_uid.empty() &&
        current->job_uid == job_uid) {
        return std::nullopt;
    }
    STOKER_TRY(const auto manifest, MappedManifest::open(device, data, revision));
    const auto& view = manifest.view();
    std::uint64_t smallest = 0;
    const std::uint64_t step = view.sample_count() / kLooked + 1;
    for (std::uint64_t id = 0; id < view.sample_count(); id += step) {
        if (view.size_bytes(domain::SampleId{id}) < view.size_bytes(domain::SampleId{smallest})) {
            smallest = id;
        }
    }
    const auto info = view.sample(domain::SampleId{smallest});
    OriginFetch wanted{std::string{info.key}, std::string{info.etag}, info.size_bytes};
    if (info.size_bytes > kProofBytesMax) {
        wanted.slice = OriginSlice{0, info.size_bytes};
        wanted.size_bytes = kProofBytesMax;
    }
    return wanted;
}

}  // namespace

bool proves_access(std::string_view uri, ErrorCode code) {
    return !domain::is_http_uri(uri) &&
           (code == ErrorCode::kConflict || code == ErrorCode::kCorruption);
}

AccessProof::AccessProof(
    const SidecarParts& parts,
    const DatasetConfig& config,
    Origin& origin,
    std::function<void()> on_change)
    : parts_(parts),
      config_(config),
      origin_(origin),
      on_change_(std::move(on_change)),
      tasks_(parts.loop) {}

AccessProof::State AccessProof::ask(domain::RevisionId revision) {
    if (config_.guest) {
        revision_ = revision;
        state_ = State::kProven;
    } else if (
        revision_ != revision || (state_ != State::kProven && state_ != State::kAsking &&
                                  parts_.loop.now() >= asked_again_at_)) {
        revision_ = revision;
        state_ = State::kAsking;
        find_object();
    }
    return state_;
}

void AccessProof::find_object() {
    const auto finding = std::make_shared<std::optional<Finding>>();
    parts_.io.post([this,
                    post = tasks_.poster(),
                    &device = parts_.device,
                    data = domain::data_folder(config_.directory),
                    source = origin_.describe(),
                    job_uid = parts_.job_uid,
                    revision = *revision_,
                    finding] {
        *finding = find_smallest(device, data, revision, source, job_uid);
        post([this, revision, finding] {
            if (revision_ != revision) {
                return;
            }
            const Finding& found = **finding;
            if (!found) {
                settle(revision, State::kFailed, found.error());
            } else if (*found) {
                fetch(**found);
            } else {
                settle(revision, State::kProven, {});
            }
        });
    });
}

void AccessProof::fetch(const OriginFetch& request) {
    origin_.fetch(
        request,
        [this, post = tasks_.poster(), revision = *revision_, uri = config_.source.uri](
            const Result<OriginBytes>& bytes) {
            const Error error = bytes ? Error{} : bytes.error();
            const bool proven = bytes.has_value() || proves_access(uri, error.code);
            post([this, revision, proven, error] {
                if (revision_ != revision) {
                    return;
                }
                const bool refused = error.code == ErrorCode::kForbidden;
                settle(
                    revision,
                    proven    ? State::kProven
                    : refused ? State::kRefused
                              : State::kFailed,
                    proven ? Error{} : error);
            });
        });
}

void AccessProof::settle(domain::RevisionId revision, State state, Error error) {
    state_ = state;
    asked_again_at_ = parts_.loop.now() + kAskAgain;
    error_ = std::move(error);
    if (state == State::kProven) {
        log::info(
            "verified that this pod's key can read the dataset",
            {{"dataset", config_.name}, {"revision", domain::to_string(revision)}});
    } else {
        error_.message = fmt::format(
            "permission of this pod's key is not verified yet, so nothing of the node's cache is "
            "used: {}",
            error_.message);
        log::warning(
            "this pod's key could not read the dataset",
            {{"dataset", config_.name},
             {"code", to_string(error_.code)},
             {"error", error_.message}});
    }
    on_change_();
}

}  // namespace stoker::sidecar
