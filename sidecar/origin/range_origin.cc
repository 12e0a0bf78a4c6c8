#include "sidecar/origin/range_origin.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "common/base/guarded.h"

namespace stoker::sidecar {

namespace {

// A sample's fetch that is not answered yet.
struct SampleFetch {
    OriginRequest request;
    SampleRange range;

    // The wanted bytes in the sample's object. For an empty sample, one neighbouring byte, so that
    // the object's version is checked, too.
    [[nodiscard]] ChunkPart part(std::uint64_t ticket) const {
        const std::uint64_t size = request.fetch.size_bytes;
        return size == 0 ? ChunkPart{range.offset - (range.offset > 0 ? 1 : 0), 1, ticket}
                         : ChunkPart{range.offset + request.fetch.begin(), size, ticket};
    }

    [[nodiscard]] bool is_read_alone() const {
        const OriginFetch& fetch = request.fetch;
        return fetch.slice || fetch.size_bytes >= kReadAloneBytes || fetch.attempts > 0;
    }

    void fail_with(const Error& error, std::uint32_t failed_requests = 1) const {
        const std::string place =
            error.code == ErrorCode::kCorruption ? fmt::format(" at byte {}", range.offset) : "";
        request.done(
            {fail(error.prefixed(fmt::format("'{}'{}", request.fetch.key, place))),
             failed_requests});
    }

    // Answers the fetch with `bytes`, whose payload is that of part().
    void answer(OriginBytes bytes) const {
        bytes.payload.resize(request.fetch.size_bytes);
        bytes.stored_crc32c = range.crc32c;
        request.done({std::move(bytes)});
    }
};

// Whether the object has the bytes that `fetch` wants of the sample at `range`.
bool is_within_object(const SampleRange& range, const OriginFetch& fetch) {
    const std::uint64_t room = range.object.bytes - range.offset;
    return fetch.begin() <= room && fetch.size_bytes <= room - fetch.begin();
}

// The request for `size_bytes` of an object.
OriginFetch in_object(const ChunkObject& object, std::uint64_t offset, std::uint64_t size_bytes) {
    OriginFetch wanted{object.key, object.etag, size_bytes};
    wanted.slice = OriginSlice{offset, object.bytes};
    return wanted;
}

// Splits the bytes of a read among `samples`, which are in the order of the read's parts.
void answer_all(const ChunkRead& read, const std::vector<SampleFetch>& samples, OriginBytes bytes) {
    if (samples.size() == 1) {
        samples.front().answer(std::move(bytes));
        return;
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const ChunkPart& part = read.parts[i];
        const auto begin =
            bytes.payload.begin() + static_cast<std::ptrdiff_t>(part.offset - read.offset);
        OriginBytes own;
        own.payload.assign(begin, begin + static_cast<std::ptrdiff_t>(part.size_bytes));
        own.first_byte = bytes.first_byte;
        own.requests = i == 0 ? bytes.requests : 0;
        own.attempts = bytes.attempts;
        samples[i].answer(std::move(own));
    }
}

// Fails all samples of a failed request; only the first one counts the request.
void fail_all(const std::vector<SampleFetch>& samples, const Error& error) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
        samples[i].fail_with(error, i == 0 ? 1 : 0);
    }
}

class RangeOrigin final : public Origin {
public:
    RangeOrigin(
        std::unique_ptr<Origin> objects,
        std::unique_ptr<const RangeFormat> format,
        ChunkReads::Limits limits)
        : format_(std::move(format)),
          state_(limits),
          objects_(std::move(objects)),
          origin_(*objects_) {}

    ~RangeOrigin() override;
    RangeOrigin(const RangeOrigin&) = delete;
    RangeOrigin& operator=(const RangeOrigin&) = delete;

    [[nodiscard]] std::string describe() const override {
        return fmt::format("{} ({})", objects_->describe(), format_->name());
    }

    [[nodiscard]] bool has_key() const override { return objects_->has_key(); }

    [[nodiscard]] OriginCapacity capacity() const override { return objects_->capacity(); }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        return list_samples(nullptr, progress, stop);
    }

    Result<domain::Listing> list_again(
        const domain::ManifestView& known,
        const std::function<void(std::uint64_t)>& progress,
        std::stop_token stop) override {
        return list_samples(&known, progress, stop);
    }

    void fetch(OriginFetch request, std::function<void(Result<OriginBytes>)> done) override {
        std::vector<OriginRequest> one;
        one.push_back({std::move(request), [done = std::move(done)](OriginAnswer answer) {
                           done(std::move(answer.bytes));
                       }});
        fetch_together(std::move(one));
    }

    void fetch_together(std::vector<OriginRequest> requests) override;

private:
    using Samples = std::shared_ptr<std::vector<SampleFetch>>;  // in the order of a read's parts

    struct State {
        explicit State(ChunkReads::Limits limits)
            : reads(limits) {}

        ChunkReads reads;
        GapLimit gaps;
        std::unordered_map<std::uint64_t, SampleFetch> waiting;  // by ticket
        std::uint64_t last_ticket = 0;
        bool closing = false;
    };

    struct NextRead {
        ChunkRead read;
        Samples samples;
    };

    Result<domain::Listing> list_samples(
        const domain::ManifestView* known,
        const std::function<void(std::uint64_t)>& progress,
        const std::stop_token& stop);
    void read_alone(SampleFetch sample);
    std::optional<NextRead> next_read();
    void start_reads();
    void on_read(const ChunkRead& read, const Samples& samples, Result<OriginBytes> bytes);

    const std::unique_ptr<const RangeFormat> format_;
    Guarded<State> state_;
    std::unique_ptr<Origin> objects_;
    Origin& origin_;  // valid while the destructor of `objects_` ends its threads
};

// Destroying `objects_` answers the running reads. Meanwhile one of its threads may request another
// read, which `objects_` refuses.
RangeOrigin::~RangeOrigin() {
    std::unordered_map<std::uint64_t, SampleFetch> unsent;
    {
        const auto state = state_.lock();
        state->closing = true;
        unsent.swap(state->waiting);
    }
    for (const auto& [ticket, sample] : unsent) {
        sample.fail_with({ErrorCode::kCancelled, "the origin is closing"});
    }
    objects_.reset();
}

Result<domain::Listing> RangeOrigin::list_samples(
    const domain::ManifestView* known,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
    STOKER_TRY(const auto listed, objects_->list(progress, stop));
    STOKER_TRY(auto samples, format_->list(*objects_, listed, known, progress, stop));
    if (progress) {
        progress(samples.size());
    }
    return samples;
}

void RangeOrigin::fetch_together(std::vector<OriginRequest> requests) {
    for (OriginRequest& request : requests) {
        auto range = format_->find(request.fetch);
        if (!range || !is_within_object(*range, request.fetch)) {
            request.done({fail(
                ErrorCode::kInvalidArgument,
                fmt::format("'{}' is not a sample of {}", request.fetch.key, describe()))});
            continue;
        }
        SampleFetch sample{std::move(request), *std::move(range)};
        if (sample.is_read_alone()) {
            read_alone(std::move(sample));
            continue;
        }
        const auto state = state_.lock();
        const std::uint64_t ticket = ++state->last_ticket;
        state->reads.add(sample.range.object, sample.part(ticket));
        state->waiting.emplace(ticket, std::move(sample));
    }
    start_reads();
}

void RangeOrigin::read_alone(SampleFetch sample) {
    const ChunkPart part = sample.part(0);
    OriginFetch wanted = in_object(sample.range.object, part.offset, part.size_bytes);
    wanted.attempts = sample.request.fetch.attempts;
    origin_.fetch(std::move(wanted), [sample = std::move(sample)](Result<OriginBytes> bytes) {
        bytes ? sample.answer(*std::move(bytes)) : sample.fail_with(bytes.error());
    });
}

std::optional<RangeOrigin::NextRead> RangeOrigin::next_read() {
    const auto state = state_.lock();
    state->reads.set_reads_max(origin_.capacity().requests);
    auto read = state->closing ? std::nullopt : state->reads.next(state->gaps.bytes());
    if (!read) {
        return std::nullopt;
    }
    NextRead next{*std::move(read), std::make_shared<std::vector<SampleFetch>>()};
    for (const ChunkPart& part : next.read.parts) {
        next.samples->push_back(std::move(state->waiting.extract(part.ticket).mapped()));
    }
    return next;
}

void RangeOrigin::start_reads() {
    while (auto next = next_read()) {
        OriginFetch wanted = in_object(next->read.chunk, next->read.offset, next->read.size_bytes);
        origin_.fetch(std::move(wanted), [this, next = *next](Result<OriginBytes> bytes) {
            on_read(next.read, next.samples, std::move(bytes));
        });
    }
}

// Takes the result of a read. Runs on a thread of `objects_`.
void RangeOrigin::on_read(
    const ChunkRead& read, const Samples& samples, Result<OriginBytes> bytes) {
    {
        const auto state = state_.lock();
        state->reads.end();
        if (bytes && bytes->request_time > Duration::zero()) {
            state->gaps.note(bytes->first_byte, bytes->request_time, read.size_bytes);
        }
    }
    if (bytes) {
        answer_all(read, *samples, *std::move(bytes));
    } else if (samples->size() > 1 && bytes.error().code == ErrorCode::kResourceExhausted) {
        std::ranges::for_each(*samples, [this](auto& sample) { read_alone(std::move(sample)); });
    } else {
        fail_all(*samples, bytes.error());
    }
    start_reads();
}

}  // namespace

std::unique_ptr<Origin> make_range_origin(
    std::unique_ptr<Origin> objects,
    std::unique_ptr<const RangeFormat> format,
    ChunkReads::Limits limits) {
    return std::make_unique<RangeOrigin>(std::move(objects), std::move(format), limits);
}

}  // namespace stoker::sidecar
