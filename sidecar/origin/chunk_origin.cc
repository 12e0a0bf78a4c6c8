#include "sidecar/origin/chunk_origin.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "common/base/guarded.h"
#include "common/domain/chunk_format.h"
#include "sidecar/origin/packed_listing.h"

namespace stoker::sidecar {

namespace {

// A sample's fetch until it is answered.
struct SampleFetch {
    OriginRequest request;
    domain::ChunkPlace place;

    // Its part of the chunk. An empty sample has no bytes to ask for: it asks for the byte before
    // it, which every chunk has, so that its chunk is checked, too.
    [[nodiscard]] ChunkPart part(std::uint64_t ticket) const {
        const std::uint64_t size = request.fetch.size_bytes;
        return size == 0 ? ChunkPart{place.offset - 1, 1, ticket}
                         : ChunkPart{place.offset, size, ticket};
    }

    [[nodiscard]] ChunkObject chunk() const {
        return {place.chunk, place.chunk_etag, place.chunk_bytes};
    }

    void fail_with(const Error& error, std::uint32_t failed_requests = 1) const {
        request.done(
            {fail(error.prefixed(fmt::format("'{}'", request.fetch.key))), failed_requests});
    }

    // Answers with `bytes`, whose payload is part().
    void answer(OriginBytes bytes) const {
        bytes.payload.resize(request.fetch.size_bytes);
        bytes.stored_crc32c = place.crc32c;
        request.done({std::move(bytes)});
    }
};

// The request for `size_bytes` of a chunk.
OriginFetch in_chunk(const ChunkObject& chunk, std::uint64_t offset, std::uint64_t size_bytes) {
    OriginFetch wanted{domain::chunk_key(chunk.number), chunk.etag, size_bytes};
    wanted.slice = OriginSlice{offset, chunk.bytes};
    return wanted;
}

// Cuts the bytes of a read into those of its samples, which are in the order of its parts.
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

// Samples whose request failed: the first one counts it.
void fail_all(const std::vector<SampleFetch>& samples, const Error& error) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
        samples[i].fail_with(error, i == 0 ? 1 : 0);
    }
}

class ChunkOrigin final : public Origin {
public:
    ChunkOrigin(std::unique_ptr<Origin> chunks, ChunkReads::Limits limits)
        : state_(limits),
          chunks_(std::move(chunks)),
          origin_(*chunks_) {}

    ~ChunkOrigin() override;
    ChunkOrigin(const ChunkOrigin&) = delete;
    ChunkOrigin& operator=(const ChunkOrigin&) = delete;

    [[nodiscard]] std::string describe() const override {
        return chunks_->describe() + " (chunks)";
    }

    [[nodiscard]] bool has_key() const override { return chunks_->has_key(); }

    [[nodiscard]] OriginCapacity capacity() const override { return chunks_->capacity(); }

    Result<domain::Listing> list(
        const std::function<void(std::uint64_t)>& progress, std::stop_token stop) override {
        STOKER_TRY(const auto objects, chunks_->list(progress, stop));
        STOKER_TRY(auto samples, list_packed(*chunks_, objects.objects(), progress, stop));
        if (progress) {
            progress(samples.size());
        }
        return samples;
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

    void read_alone(SampleFetch sample);
    std::optional<NextRead> next_read();
    void start_reads();
    void on_read(const ChunkRead& read, const Samples& samples, Result<OriginBytes> bytes);

    Guarded<State> state_;
    std::unique_ptr<Origin> chunks_;
    Origin& origin_;  // valid while the destructor of `chunks_` ends its threads
};

// The destruction of `chunks_` answers the running reads. One of its threads may ask it for another
// read at that moment; it refuses.
ChunkOrigin::~ChunkOrigin() {
    std::unordered_map<std::uint64_t, SampleFetch> unsent;
    {
        const auto state = state_.lock();
        state->closing = true;
        unsent.swap(state->waiting);
    }
    for (const auto& [ticket, sample] : unsent) {
        sample.fail_with({ErrorCode::kCancelled, "the origin is closing"});
    }
    chunks_.reset();
}

void ChunkOrigin::fetch_together(std::vector<OriginRequest> requests) {
    for (OriginRequest& request : requests) {
        const auto place = domain::parse_place(request.fetch.etag);
        const std::uint64_t size = request.fetch.size_bytes;
        if (!place || size > place->chunk_bytes - place->offset) {
            request.done({fail(
                ErrorCode::kInvalidArgument,
                fmt::format(
                    "'{}' of {}: not a sample of a chunk", request.fetch.key, describe()))});
            continue;
        }
        SampleFetch sample{std::move(request), *place};
        if (size >= kReadAloneBytes || sample.request.fetch.attempts > 0) {
            read_alone(std::move(sample));
            continue;
        }
        const auto state = state_.lock();
        const std::uint64_t ticket = ++state->last_ticket;
        state->reads.add(sample.chunk(), sample.part(ticket));
        state->waiting.emplace(ticket, std::move(sample));
    }
    start_reads();
}

void ChunkOrigin::read_alone(SampleFetch sample) {
    const ChunkPart part = sample.part(0);
    OriginFetch wanted = in_chunk(sample.chunk(), part.offset, part.size_bytes);
    wanted.attempts = sample.request.fetch.attempts;
    origin_.fetch(std::move(wanted), [sample = std::move(sample)](Result<OriginBytes> bytes) {
        bytes ? sample.answer(*std::move(bytes)) : sample.fail_with(bytes.error());
    });
}

std::optional<ChunkOrigin::NextRead> ChunkOrigin::next_read() {
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

void ChunkOrigin::start_reads() {
    while (auto next = next_read()) {
        OriginFetch wanted = in_chunk(next->read.chunk, next->read.offset, next->read.size_bytes);
        origin_.fetch(std::move(wanted), [this, next = *next](Result<OriginBytes> bytes) {
            on_read(next.read, next.samples, std::move(bytes));
        });
    }
}

// Runs on a thread of `chunks_`.
void ChunkOrigin::on_read(
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

std::unique_ptr<Origin> make_chunk_origin(
    std::unique_ptr<Origin> chunks, ChunkReads::Limits limits) {
    return std::make_unique<ChunkOrigin>(std::move(chunks), limits);
}

}  // namespace stoker::sidecar
