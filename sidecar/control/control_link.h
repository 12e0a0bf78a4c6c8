#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/domain/ids.h"
#include "common/domain/manifest_marks.h"
#include "sidecar/config/sidecar_config.h"

// The sidecar's end of proto/control/v1/control.proto, with plain values on our side of it.
namespace stoker::sidecar {

enum class ManifestStage : std::uint8_t { kListing, kReady, kFailed };

// How unevenly a job reads a dataset here; see RankSketch in the proto.
struct LinkSketch {
    std::string job_uid;
    std::uint64_t revision = 0;  // not 0; goes up when the masses change
    std::vector<float> masses;
    double volume = 0;  // bytes that it reads an epoch, as a share of the dataset
};

// What the disk allows, whatever the grant says.
struct LinkDiskLimit {
    Bytes resident{};   // that may be here
    Bytes kept_free{};  // of the disk: reservedFree, and room for the window
};

// Where our listing begins to differ from the pinned one: at `key`, or among `keys` keys from there
// on. Empty and 0: not known.
struct LinkOriginChange {
    std::string key;
    std::uint64_t keys = 0;
};

// One dataset as this sidecar sees it. Counters are totals since its start.
struct LinkDataset {
    std::string name;
    std::string uid;
    bool leader = false;
    ManifestStage stage = ManifestStage::kListing;
    std::string error;
    std::uint64_t objects_listed = 0;
    std::string revision;
    std::uint64_t samples = 0;
    Bytes total_bytes{};
    Bytes resident_bytes{};
    std::uint64_t resident_samples = 0;
    Bytes window_bytes{};
    Bytes granted_bytes{};
    Bytes cache_bytes_read{};   // by our trainers, without crossing the link to the origin for it
    Bytes miss_bytes_read{};    // by our trainers, over that link for this very read
    Bytes origin_bytes_read{};  // fetched by us, for whoever reads it
    std::uint64_t origin_requests = 0;
    std::uint64_t hit_samples = 0;   // of cache_bytes_read
    std::uint64_t miss_samples = 0;  // of miss_bytes_read
    std::uint64_t corrupt_samples = 0;
    bool admitting = true;
    Duration origin_request_time{};      // of origin_requests, summed; zero: not measured
    std::vector<LinkSketch> sketches{};  // a leader's, one a job
    std::optional<LinkDiskLimit> disk_limit;
    std::string read_revision{};    // what our trainers read, or will when it is pinned
    domain::ManifestMarks marks{};  // of it, told by leaders; empty: not pinned
    std::optional<LinkOriginChange> origin_change{};  // our trainers cannot read the pinned one
    std::string changed_key{};  // the first object that was not as listed when it was fetched
};

// Batches of one side of a measurement, and how long they took from asking to asking.
struct LinkProbeSide {
    std::uint64_t batches = 0;
    Duration time{};
    Bytes bytes{};
};

// What has been measured so far of the LinkProbe with this id; 0: of none.
struct LinkProbeResult {
    std::uint64_t id = 0;
    LinkProbeSide bypassed;
    LinkProbeSide cached;
};

// What the trainers of this pod told, summed.
struct LinkTrainer {
    std::uint64_t epoch = 0;
    std::uint64_t samples = 0;
    Bytes bytes{};
    std::uint64_t steps = 0;
    Duration wait{};
    Duration compute{};
    std::uint64_t fallback_samples = 0;
    std::uint64_t epoch_samples = 0;
    std::uint64_t epoch_position = 0;
    LinkProbeResult probe{};
    std::uint64_t epochs = 0;  // that it means to run; 0: not known
};

struct LinkReport {
    std::vector<LinkDataset> datasets;
    LinkTrainer trainer;
    bool awaits_pin = false;  // trainers wait for the operator: the next report is due soon
};

// What the cache is worth to one job, in any unit.
struct LinkWeight {
    std::string job_uid;
    double weight = 0;  // finite, 0 or more
};

struct LinkGrant {
    std::string dataset_uid;
    Bytes resident_bytes{};
    Duration valid{};
    std::uint64_t origin_bytes_per_second = 0;  // 0: no limit
    std::string reason;
    std::vector<LinkWeight> weights{};  // none: all jobs alike
};

// The operator asks: read so many batches past the cache and as many through it, once for each id.
struct LinkProbe {
    std::uint64_t id = 0;
    std::uint32_t batches = 0;
};

// The revision that all ranks of the attempt read.
struct LinkPin {
    std::string dataset_uid;
    domain::RevisionId revision{};
    domain::ManifestMarks marks;  // of it; empty: not known
};

// They are called on the link's threads, one call of each at a time, and should return soon.
struct LinkCallbacks {
    std::function<LinkReport()> report;
    std::function<void(const LinkGrant&)> grant;
    std::function<void(const LinkProbe&)> probe{};  // may be empty: nothing is measured here
    std::function<void(const LinkPin&)> pin{};      // may be empty: nothing is pinned here
};

struct LinkOptions {
    Duration report_interval = std::chrono::seconds{2};
    Duration waiting_interval = std::chrono::milliseconds{500};  // while a pin is awaited
    Duration retry_min =
        std::chrono::milliseconds{200};  // a quarter more each time, up to retry_max, with jitter
    Duration retry_max = std::chrono::seconds{15};
    // The longest pause where nobody answered: that costs nobody anything, and behind the Service
    // stands another replica, so every second try may reach the one that leads.
    Duration unreached_max = std::chrono::seconds{5};
    Duration farewell = std::chrono::seconds{2};  // the longest that the last report may take
    std::uint64_t seed = 0;                       // of the jitter
};

// Keeps one stream to the operator open for ever: says who we are, reports every interval, hands
// grants on. Whatever goes wrong is logged once per change and tried again; nothing else in the
// sidecar waits for it. The token and the CA are read anew for every connection. Destruction sends
// one last report, with all that was counted, closes the stream and joins; after it no callback
// runs.
class ControlLink {
public:
    // kInvalidArgument: no CA, or a file of the settings cannot be read now.
    static Result<std::unique_ptr<ControlLink>> start(
        const ControlConfig& settings,
        const JobConfig& job,
        std::vector<DatasetConfig> datasets,
        LinkCallbacks callbacks,
        LinkOptions options);

    virtual ~ControlLink() = default;

    [[nodiscard]] virtual bool is_attached() const = 0;
};

}  // namespace stoker::sidecar
