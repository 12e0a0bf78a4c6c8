#include "proto/local/protocol.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>

#include <fmt/core.h>

#include "common/base/wire.h"
#include "proto/local/frame_fields.h"

namespace stoker::local {

namespace {

constexpr FrameType kLastType = FrameType::kPong;

void put(WireWriter& out, const Hello& hello) {
    out.put(kProtocolMagic)
        .put(hello.version)
        .put(static_cast<std::uint16_t>(hello.relay ? 1 : 0))
        .put(hello.pid)
        .put(hello.rank)
        .put(hello.world_size)
        .put(std::uint32_t{0})
        .put(hello.stream);
    put_text(out, hello.dataset);
    put_text(out, hello.client);
}

void put(WireWriter& out, const Welcome& welcome) {
    out.put(welcome.version)
        .put(std::uint16_t{0})
        .put(welcome.features)
        .put(welcome.revision)
        .put(welcome.sample_count);
    put_text(out, welcome.directory);
}

void put(WireWriter& out, const Listing& listing) {
    out.put(listing.objects_listed);
}

void put(WireWriter& out, const ErrorReply& error) {
    out.put(error.code);
    put_text(out, error.message);
}

void put(WireWriter& out, const Fetch& fetch) {
    put_ids(out, fetch.samples);
}

void put(WireWriter& out, const Fetched& fetched) {
    out.put(static_cast<std::uint32_t>(fetched.statuses.size()));
    out.put_bytes(std::as_bytes(std::span{fetched.statuses}));
    put_text(out, fetched.message);
}

void put(WireWriter& out, const Plan& plan) {
    out.put(plan.epoch).put(plan.sample_count).put(plan.start);
}

void put(WireWriter& /*out*/, const Planned& /*planned*/) {}

void put(WireWriter& out, const Consumed& consumed) {
    out.put(consumed.epoch);
    put_ids(out, consumed.samples);
}

void put(WireWriter& out, const Report& report) {
    out.put(report.epoch)
        .put(report.steps)
        .put(report.samples)
        .put(report.bytes)
        .put(report.hit_samples)
        .put(report.origin_samples)
        .put(report.wait_ns)
        .put(report.compute_ns);
}

void put(WireWriter& out, const Counted& counted) {
    out.put(counted.hit_samples)
        .put(counted.hit_bytes)
        .put(counted.fetched_samples)
        .put(counted.fetched_bytes);
}

// The sampling frames, and those of a probe.
template <class Frame>
void put(WireWriter& out, const Frame& frame) {
    put_fields(out, frame);
}

template <class Frame>
Message get_frame(WireReader& in) {
    Frame frame;
    get_fields(in, frame);
    return frame;
}

Hello get_hello(WireReader& in, bool& magic_ok) {
    Hello hello;
    magic_ok = in.get<std::uint32_t>() == kProtocolMagic;
    hello.version = in.get<std::uint16_t>();
    hello.relay = (in.get<std::uint16_t>() & 1U) != 0;
    if (hello.version != kProtocolVersion) {
        in.get_bytes(in.left());  // the rest is another version's business
        return hello;
    }
    hello.pid = in.get<std::uint32_t>();
    hello.rank = in.get<std::uint32_t>();
    hello.world_size = in.get<std::uint32_t>();
    in.get<std::uint32_t>();
    hello.stream = in.get<std::uint64_t>();
    hello.dataset = get_text(in);
    hello.client = get_text(in);
    return hello;
}

Welcome get_welcome(WireReader& in) {
    Welcome welcome;
    welcome.version = in.get<std::uint16_t>();
    in.get<std::uint16_t>();
    welcome.features = in.get<std::uint32_t>();
    welcome.revision = in.get<std::uint64_t>();
    welcome.sample_count = in.get<std::uint64_t>();
    welcome.directory = get_text(in);
    return welcome;
}

Fetched get_fetched(WireReader& in) {
    Fetched fetched;
    const auto count = in.get<std::uint32_t>();
    const auto raw = in.get_bytes(count);
    fetched.statuses.reserve(raw.size());
    for (const std::byte status : raw) {
        fetched.statuses.push_back(static_cast<FetchStatus>(status));
    }
    fetched.message = get_text(in);
    return fetched;
}

Report get_report(WireReader& in) {
    Report report;
    for (auto* field :
         {&report.epoch,
          &report.steps,
          &report.samples,
          &report.bytes,
          &report.hit_samples,
          &report.origin_samples,
          &report.wait_ns,
          &report.compute_ns}) {
        *field = in.get<std::uint64_t>();
    }
    return report;
}

Counted get_counted(WireReader& in) {
    Counted counted;
    for (auto* field :
         {&counted.hit_samples,
          &counted.hit_bytes,
          &counted.fetched_samples,
          &counted.fetched_bytes}) {
        *field = in.get<std::uint64_t>();
    }
    return counted;
}

std::optional<Message> get_later_frame(FrameType type, WireReader& in) {
    switch (type) {
        case FrameType::kBegin:
            return get_frame<Begin>(in);
        case FrameType::kBegun:
            return get_frame<Begun>(in);
        case FrameType::kDraw:
            return get_frame<Draw>(in);
        case FrameType::kDrawn:
            return get_frame<Drawn>(in);
        case FrameType::kLosses:
            return get_frame<Losses>(in);
        case FrameType::kAskEpoch:
            return get_frame<AskEpoch>(in);
        case FrameType::kEpochTally:
            return get_frame<EpochTally>(in);
        case FrameType::kAskSnapshot:
            return get_frame<AskSnapshot>(in);
        case FrameType::kSnapshot:
            return get_frame<Snapshot>(in);
        case FrameType::kAskProbe:
            return get_frame<AskProbe>(in);
        case FrameType::kProbe:
            return get_frame<Probe>(in);
        case FrameType::kProbed:
            return get_frame<Probed>(in);
        case FrameType::kSimilarity:
            return get_frame<Similarity>(in);
        case FrameType::kPeer:
            return get_frame<Peer>(in);
        case FrameType::kPing:
            return get_frame<Ping>(in);
        case FrameType::kPong:
            return get_frame<Pong>(in);
        default:
            return std::nullopt;
    }
}

Result<Message> get_message(FrameType type, WireReader& in) {
    switch (type) {
        case FrameType::kHello: {
            bool magic_ok = false;
            Hello hello = get_hello(in, magic_ok);
            if (!magic_ok) {
                return fail(ErrorCode::kInvalidArgument, "hello without the protocol's magic");
            }
            return Message{std::move(hello)};
        }
        case FrameType::kWelcome:
            return Message{get_welcome(in)};
        case FrameType::kListing:
            return Message{Listing{in.get<std::uint64_t>()}};
        case FrameType::kError: {
            const auto code = in.get<std::uint16_t>();
            return Message{ErrorReply{code, get_text(in)}};
        }
        case FrameType::kFetch:
            return Message{Fetch{get_ids(in)}};
        case FrameType::kFetched:
            return Message{get_fetched(in)};
        case FrameType::kPlan: {
            const auto epoch = in.get<std::uint64_t>();
            const auto count = in.get<std::uint64_t>();
            return Message{Plan{epoch, count, in.get<std::uint64_t>()}};
        }
        case FrameType::kPlanned:
            return Message{Planned{}};
        case FrameType::kConsumed: {
            const auto epoch = in.get<std::uint64_t>();
            return Message{Consumed{epoch, get_ids(in)}};
        }
        case FrameType::kReport:
            return Message{get_report(in)};
        case FrameType::kCounted:
            return Message{get_counted(in)};
        default:
            break;
    }
    if (auto message = get_later_frame(type, in)) {
        return *std::move(message);
    }
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("unknown frame type {}", static_cast<unsigned>(type)));
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
    std::visit([&payload](const auto& body) { put(payload, body); }, message);
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
    WireReader in{payload};
    auto message = get_message(type, in);
    if (message && (!in.ok() || in.left() != 0)) {
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
