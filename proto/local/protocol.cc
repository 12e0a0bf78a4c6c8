#include "proto/local/protocol.h"

#include <array>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include "common/base/wire.h"
#include "proto/local/frame_fields.h"

namespace stoker::local {

namespace {

constexpr FrameType kLastType = FrameType::kPong;

void fields(auto& io, Either<Hello> auto& hello) {
    io.constant(kProtocolMagic);
    io.numbers(hello.version);
    io.template flag<std::uint16_t>(hello.relay);
    if (io.ends_early(hello.version != kProtocolVersion)) {
        return;  // another protocol version may have more fields
    }
    io.numbers(hello.pid, hello.rank, hello.world_size);
    io.template zero<std::uint32_t>();
    io.numbers(hello.stream);
    io.text(hello.dataset);
    io.text(hello.client);
}

void fields(auto& io, Either<Welcome> auto& welcome) {
    io.numbers(welcome.version);
    io.template zero<std::uint16_t>();
    io.numbers(welcome.features, welcome.revision, welcome.sample_count);
    io.text(welcome.directory);
}

void fields(auto& io, Either<Listing> auto& listing) {
    io.numbers(listing.objects_listed);
}

void fields(auto& io, Either<ErrorReply> auto& error) {
    io.numbers(error.code);
    io.text(error.message);
}

// [count u32][0 u32][ids u64]
void id_fields(auto& io, auto& ids) {
    const auto count = io.count(ids.size());
    io.template zero<std::uint32_t>();
    io.array(ids, count);
}

void fields(auto& io, Either<Fetch> auto& fetch) {
    id_fields(io, fetch.samples);
}

void fields(auto& io, Either<Fetched> auto& fetched) {
    io.array(fetched.statuses, io.count(fetched.statuses.size()));
    io.text(fetched.message);
}

void fields(auto& io, Either<Plan> auto& plan) {
    io.numbers(plan.epoch, plan.sample_count, plan.start);
}

void fields(auto& io, Either<Consumed> auto& consumed) {
    io.numbers(consumed.epoch);
    id_fields(io, consumed.samples);
}

void fields(auto& io, Either<Report> auto& report) {
    io.numbers(
        report.epoch,
        report.steps,
        report.samples,
        report.bytes,
        report.hit_samples,
        report.origin_samples,
        report.wait_ns,
        report.compute_ns);
}

void fields(auto& io, Either<Counted> auto& counted) {
    io.numbers(
        counted.hit_samples, counted.hit_bytes, counted.fetched_samples, counted.fetched_bytes);
}

void fields(auto& io, Either<Parameter> auto& parameter) {
    io.text(parameter.name);
    io.number(parameter.value);
}

void fields(auto& io, Either<Begin> auto& begin) {
    io.numbers(
        begin.epoch,
        begin.skip,
        begin.seed,
        begin.rank,
        begin.world_size,
        begin.batch,
        begin.served_bytes,
        begin.snapshot_bytes);
    io.resize(begin.parameters, io.count(begin.parameters.size(), kParametersMax));
    io.text(begin.contract);
    io.text(begin.job);
    for (auto& parameter : begin.parameters) {
        fields(io, parameter);
    }
}

void fields(auto& io, Either<Begun> auto& begun) {
    io.numbers(begun.epoch, begun.losses);
}

void fields(auto& io, Either<Draw> auto& draw) {
    io.numbers(draw.epoch, draw.count);
    io.template zero<std::uint32_t>();
}

void fields(auto& io, Either<Drawn> auto& drawn) {
    io.numbers(drawn.epoch);
    const auto count = io.count(drawn.served.size());
    io.template flag<std::uint32_t>(drawn.ended);
    io.array(drawn.requested, count);
    io.array(drawn.served, count);
    io.array(drawn.kinds, count);
}

void fields(auto& io, Either<Losses> auto& losses) {
    io.numbers(losses.epoch);
    const auto count = io.count(losses.samples.size());
    bool has_others = !losses.p_others.empty();
    io.template flag<std::uint32_t>(has_others);
    io.array(losses.samples, count);
    io.array(losses.losses, count);
    io.array(losses.p_others, has_others ? count : 0);
}

void fields(auto& io, Either<Similarity> auto& similarity) {
    const auto count = io.count(similarity.samples.size());
    io.template zero<std::uint32_t>();
    io.array(similarity.samples, count);
    io.array(similarity.hashes, count);
}

void fields(auto& io, Either<AskEpoch> auto& ask) {
    io.numbers(ask.epoch);
}

void fields(auto& io, Either<EpochTally> auto& tally) {
    io.numbers(
        tally.epoch,
        tally.requested,
        tally.distinct,
        tally.repeated,
        tally.substituted,
        tally.skipped,
        tally.losses_used,
        tally.losses_ignored);
}

void fields(auto& io, Either<Snapshot> auto& snapshot) {
    io.array(snapshot.state, io.count(snapshot.state.size()));
}

void fields(auto& io, Either<Probe> auto& probe) {
    io.numbers(probe.id, probe.batches);
}

void fields(auto& io, Either<Probed> auto& probed) {
    io.numbers(probed.id);
    io.template flag<std::uint64_t>(probed.bypassing);
    io.numbers(
        probed.bypassed_batches,
        probed.bypassed_ns,
        probed.bypassed_bytes,
        probed.cached_batches,
        probed.cached_ns,
        probed.cached_bytes);
}

void fields(auto& io, Either<Peer> auto& peer) {
    io.array(peer.secret, kSecretBytes);
    io.numbers(peer.sidecar);
}

template <class Frame>
requires std::is_empty_v<Frame>

void fields(auto& /*io*/, Frame& /*frame*/) {}

template <std::size_t... kTypes>
Message empty_message(FrameType type, std::index_sequence<kTypes...> /*types*/) {
    constexpr std::array kMake{+[] { return Message{std::in_place_index<kTypes>}; }...};
    return kMake.at(static_cast<std::size_t>(type) - 1)();
}

}  // namespace

static_assert(
    std::variant_size_v<Message> == static_cast<std::size_t>(kLastType),
    "a message's type is its place in the variant, counted from 1");

bool is_client_frame(FrameType type) {
    switch (type) {
        case FrameType::kFetch:
        case FrameType::kPlan:
        case FrameType::kConsumed:
        case FrameType::kReport:
        case FrameType::kBegin:
        case FrameType::kDraw:
        case FrameType::kLosses:
        case FrameType::kAskEpoch:
        case FrameType::kAskSnapshot:
        case FrameType::kAskProbe:
        case FrameType::kProbed:
        case FrameType::kSimilarity:
            return true;
        default:
            return false;
    }
}

std::vector<std::byte> encode_frame(const Message& message, std::uint64_t request_id) {
    WireWriter payload;
    FieldWriter io{payload};
    std::visit([&io](const auto& body) { fields(io, body); }, message);
    WireWriter frame;
    frame.put(static_cast<std::uint32_t>(payload.size()))
        .put(static_cast<std::uint16_t>(message.index() + 1))
        .put(std::uint16_t{0})
        .put(request_id)
        .put_bytes(payload.view());
    return std::move(frame).take();
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes) {
    WireReader in{bytes};
    FrameHeader header;
    header.payload_bytes = in.get<std::uint32_t>();
    const auto type = in.get<std::uint16_t>();
    const auto flags = in.get<std::uint16_t>();
    header.request_id = in.get<std::uint64_t>();
    if (!in.ok()) {
        return fail(ErrorCode::kInvalidArgument, "frame header is cut short");
    }
    if (header.payload_bytes > kFramePayloadBytesMax) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "frame of {} bytes, the limit is {}", header.payload_bytes, kFramePayloadBytesMax));
    }
    if (type < static_cast<std::uint16_t>(FrameType::kHello) ||
        type > static_cast<std::uint16_t>(kLastType) || flags != 0) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("unknown frame type {} with flags {}", type, flags));
    }
    header.type = static_cast<FrameType>(type);
    return header;
}

Result<Message> decode_payload(FrameType type, std::span<const std::byte> payload) {
    if (type < FrameType::kHello || type > kLastType) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("unknown frame type {}", static_cast<unsigned>(type)));
    }
    WireReader in{payload};
    FieldReader io{in};
    Message message = empty_message(type, std::make_index_sequence<std::variant_size_v<Message>>{});
    std::visit([&io](auto& body) { fields(io, body); }, message);
    if (!io.constants_ok()) {
        return fail(ErrorCode::kInvalidArgument, "hello without the protocol's magic");
    }
    if (!in.ok() || in.left() != 0) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format(
                "frame of type {} has a payload of a wrong length ({} bytes)",
                static_cast<unsigned>(type),
                payload.size()));
    }
    return message;
}

}  // namespace stoker::local
