#include "sidecar/peers/peer_messages.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/wire.h"

namespace stoker::sidecar {

namespace {

enum class Type : std::uint8_t {
    kHello = 1,
    kAsk = 2,
    kAnswer = 3,
    kRefusal = 4,
    kLosses = 5,
    kManifestAsk = 6,
    kManifestPiece = 7,
    kManifestWait = 8,
};

// The bit in an Ask's request id that encodes PeerAsk::only_if_there.
constexpr std::uint64_t kOnlyIfThere = std::uint64_t{1} << 63U;

// The bit of a ManifestAsk's number of bytes that says PeerManifestAsk::wants_age.
constexpr std::uint32_t kWantsAge = std::uint32_t{1} << 31U;

// The age of a listing in seconds if it is not known; what is more is not known either.
constexpr std::uint32_t kAgeUnknown = ~std::uint32_t{0};

void put(WireWriter& out, Type type) {
    out.put(static_cast<std::uint8_t>(type));
}

void put_text(WireWriter& out, const std::string& text) {
    const std::size_t bytes = std::min(text.size(), PeerHello::kTextMax);
    out.put(static_cast<std::uint8_t>(bytes)).put_text(std::string_view{text}.substr(0, bytes));
}

std::string get_text(WireReader& in) {
    return std::string{in.get_text(in.get<std::uint8_t>())};
}

void put_age(WireWriter& out, const std::optional<Duration>& age) {
    using std::chrono::seconds;
    const auto whole = age ? std::chrono::ceil<seconds>(*age).count() : kAgeUnknown;
    out.put(static_cast<std::uint32_t>(std::clamp<std::int64_t>(whole, 0, kAgeUnknown)));
}

PeerListing get_listing(WireReader& in) {
    PeerListing listing{get_text(in)};
    if (const auto age = in.get<std::uint32_t>(); age != kAgeUnknown) {
        listing.age = std::chrono::seconds{age};
    }
    return listing;
}

void encode(WireWriter& out, const PeerHello& hello) {
    put(out, Type::kHello);
    out.put(kPeerProtocolVersion);
    put_text(out, hello.dataset_uid);
    out.put(hello.revision.value());
    put_text(out, hello.node);
    out.put(hello.generation);
}

void encode(WireWriter& out, const PeerAsk& ask) {
    put(out, Type::kAsk);
    out.put(ask.request_id | (ask.only_if_there ? kOnlyIfThere : 0));
    out.put_bytes(std::as_bytes(std::span{ask.samples}));
}

void encode(WireWriter& out, const PeerAnswer& answer) {
    put(out, Type::kAnswer);
    out.put(answer.request_id).put(answer.sample).put(answer.crc32c);
}

void encode(WireWriter& out, const PeerRefusal& refusal) {
    put(out, Type::kRefusal);
    out.put(refusal.request_id).put(refusal.sample).put(static_cast<std::uint8_t>(refusal.reason));
}

void encode(WireWriter& out, const PeerManifestAsk& ask) {
    put(out, Type::kManifestAsk);
    out.put(ask.source).put(ask.revision.value()).put(ask.offset);
    out.put(ask.bytes | (ask.wants_age ? kWantsAge : 0));
}

void encode(WireWriter& out, const PeerManifestPiece& piece) {
    put(out, Type::kManifestPiece);
    out.put(piece.revision.value()).put(piece.offset).put(piece.total_bytes);
    put_text(out, piece.job_uid);
    if (piece.listing) {
        put_text(out, piece.listing->attempt_uid);
        put_age(out, piece.listing->age);
    }
}

void encode(WireWriter& out, const PeerManifestWait& wait) {
    put(out, Type::kManifestWait);
    out.put(static_cast<std::uint8_t>(wait.state)).put(wait.progress);
}

void encode(WireWriter& out, const PeerLosses& losses) {
    put(out, Type::kLosses);
    put_text(out, losses.job);
    out.put(losses.epoch);
    for (const PeerLosses::Report& report : losses.reports) {
        out.put(static_cast<std::uint16_t>(report.samples.size()));
        out.put_bytes(std::as_bytes(std::span{report.samples}));
        out.put_bytes(std::as_bytes(std::span{report.codes}));
    }
}

Result<PeerMessage> decode_hello(WireReader& in) {
    if (in.get<std::uint16_t>() != kPeerProtocolVersion) {
        return fail(ErrorCode::kInvalidArgument, "the peer speaks another version");
    }
    PeerHello hello;
    hello.dataset_uid = get_text(in);
    hello.revision = domain::RevisionId{in.get<std::uint64_t>()};
    hello.node = get_text(in);
    hello.generation = in.get<std::uint64_t>();
    return hello;
}

Result<PeerMessage> decode_ask(WireReader& in) {
    PeerAsk ask;
    const auto number = in.get<std::uint64_t>();
    ask.request_id = number & ~kOnlyIfThere;
    ask.only_if_there = (number & kOnlyIfThere) != 0;
    const std::size_t count = in.left() / sizeof(domain::SampleIndex);
    if (count == 0 || count > PeerAsk::kSamplesMax) {
        return fail(ErrorCode::kInvalidArgument, "a peer's ask has no sample, or too many");
    }
    ask.samples.resize(count);
    for (auto& sample : ask.samples) {
        sample = in.get<domain::SampleIndex>();
    }
    return ask;
}

Result<PeerMessage> decode_answer(WireReader& in) {
    PeerAnswer answer;
    answer.request_id = in.get<std::uint64_t>();
    answer.sample = in.get<domain::SampleIndex>();
    answer.crc32c = in.get<std::uint32_t>();
    return answer;
}

Result<PeerMessage> decode_refusal(WireReader& in) {
    PeerRefusal refusal;
    refusal.request_id = in.get<std::uint64_t>();
    refusal.sample = in.get<domain::SampleIndex>();
    refusal.reason = static_cast<PeerRefusalReason>(in.get<std::uint8_t>());
    if (refusal.reason < PeerRefusalReason::kNotMine ||
        refusal.reason > PeerRefusalReason::kNotMember) {
        return fail(ErrorCode::kInvalidArgument, "unknown reason in a peer's refusal");
    }
    return refusal;
}

Result<PeerMessage> decode_manifest_ask(WireReader& in) {
    PeerManifestAsk ask;
    ask.source = in.get<std::uint64_t>();
    ask.revision = domain::RevisionId{in.get<std::uint64_t>()};
    ask.offset = in.get<std::uint64_t>();
    const auto number = in.get<std::uint32_t>();
    ask.bytes = number & ~kWantsAge;
    ask.wants_age = (number & kWantsAge) != 0;
    if (ask.bytes > PeerManifestAsk::kBytesMax) {
        return fail(ErrorCode::kInvalidArgument, "a peer asks for too much of a manifest");
    }
    return ask;
}

Result<PeerMessage> decode_manifest_piece(WireReader& in) {
    PeerManifestPiece piece;
    piece.revision = domain::RevisionId{in.get<std::uint64_t>()};
    piece.offset = in.get<std::uint64_t>();
    piece.total_bytes = in.get<std::uint64_t>();
    piece.job_uid = get_text(in);
    if (in.left() > 0) {
        piece.listing = get_listing(in);
    }
    return piece;
}

Result<PeerMessage> decode_manifest_wait(WireReader& in) {
    PeerManifestWait wait;
    wait.state = static_cast<PeerManifestWait::State>(in.get<std::uint8_t>());
    wait.progress = in.get<std::uint64_t>();
    if (wait.state < PeerManifestWait::State::kIdle ||
        wait.state > PeerManifestWait::State::kNever) {
        return fail(ErrorCode::kInvalidArgument, "unknown state of a peer's manifest");
    }
    return wait;
}

// Reads the number of losses that the report states, if the frame holds that many.
bool decode_report(WireReader& in, std::size_t most, PeerLosses::Report& report) {
    const std::size_t count = in.get<std::uint16_t>();
    if (count == 0 || count > most ||
        in.left() < count * (sizeof(domain::SampleIndex) + sizeof(std::uint8_t))) {
        return false;
    }
    report.samples.resize(count);
    for (auto& sample : report.samples) {
        sample = in.get<domain::SampleIndex>();
    }
    report.codes.resize(count);
    for (auto& code : report.codes) {
        code = in.get<std::uint8_t>();
    }
    return true;
}

Result<PeerMessage> decode_losses(WireReader& in) {
    PeerLosses losses;
    losses.job = get_text(in);
    losses.epoch = in.get<std::uint64_t>();
    std::size_t left = PeerLosses::kEntriesMax;
    do {
        PeerLosses::Report report;
        if (!in.ok() || !decode_report(in, left, report)) {
            return fail(ErrorCode::kInvalidArgument, "a peer's losses have a wrong length");
        }
        left -= report.samples.size();
        losses.reports.push_back(std::move(report));
    } while (in.left() > 0);
    return losses;
}

Result<PeerMessage> decode_body(WireReader& in) {
    switch (static_cast<Type>(in.get<std::uint8_t>())) {
        case Type::kHello:
            return decode_hello(in);
        case Type::kAsk:
            return decode_ask(in);
        case Type::kAnswer:
            return decode_answer(in);
        case Type::kRefusal:
            return decode_refusal(in);
        case Type::kManifestAsk:
            return decode_manifest_ask(in);
        case Type::kManifestPiece:
            return decode_manifest_piece(in);
        case Type::kManifestWait:
            return decode_manifest_wait(in);
        case Type::kLosses:
            return decode_losses(in);
    }
    return fail(ErrorCode::kInvalidArgument, "unknown type of a peer's frame");
}

}  // namespace

std::vector<std::byte> encode_peer_head(const PeerMessage& message) {
    WireWriter out;
    std::visit([&out](const auto& body) { encode(out, body); }, message);
    return std::move(out).take();
}

Result<PeerMessage> decode_peer_head(std::span<const std::byte> head) {
    WireReader in{head};
    auto message = decode_body(in);
    if (message && (!in.ok() || in.left() != 0)) {
        return fail(ErrorCode::kInvalidArgument, "a peer's frame has a head of a wrong length");
    }
    return message;
}

}  // namespace stoker::sidecar
