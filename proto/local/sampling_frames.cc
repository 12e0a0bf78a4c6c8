#include "proto/local/sampling_frames.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "proto/local/frame_fields.h"

namespace stoker::local {

namespace {

void put_blob(WireWriter& out, const std::vector<std::byte>& blob) {
    out.put(static_cast<std::uint32_t>(blob.size())).put_bytes(blob);
}

std::vector<std::byte> get_blob(WireReader& in) {
    const auto size = in.get<std::uint32_t>();
    return get_array<std::byte>(in, size);
}

// A reader that fails, as if it had been cut short.
void refuse(WireReader& in) {
    in.get_bytes(in.left() + 1);
}

template <class Tally>
auto tally_fields(Tally& tally) {
    return std::array{
        &tally.epoch,
        &tally.requested,
        &tally.distinct,
        &tally.repeated,
        &tally.substituted,
        &tally.skipped,
        &tally.losses_used,
        &tally.losses_ignored};
}

}  // namespace

void put_fields(WireWriter& out, const Begin& begin) {
    out.put(begin.epoch)
        .put(begin.skip)
        .put(begin.seed)
        .put(begin.rank)
        .put(begin.world_size)
        .put(begin.batch)
        .put(begin.served_bytes)
        .put(begin.snapshot_bytes)
        .put(static_cast<std::uint32_t>(begin.parameters.size()));
    put_text(out, begin.contract);
    put_text(out, begin.job);
    for (const Parameter& parameter : begin.parameters) {
        put_text(out, parameter.name);
        out.put(std::bit_cast<std::uint64_t>(parameter.value));
    }
}

void get_fields(WireReader& in, Begin& begin) {
    begin.epoch = in.get<std::uint64_t>();
    begin.skip = in.get<std::uint64_t>();
    begin.seed = in.get<std::uint64_t>();
    begin.rank = in.get<std::uint32_t>();
    begin.world_size = in.get<std::uint32_t>();
    begin.batch = in.get<std::uint32_t>();
    begin.served_bytes = in.get<std::uint64_t>();
    begin.snapshot_bytes = in.get<std::uint64_t>();
    const auto parameters = in.get<std::uint32_t>();
    if (parameters > kParametersMax) {
        refuse(in);
        return;
    }
    begin.contract = get_text(in);
    begin.job = get_text(in);
    for (std::uint32_t i = 0; i < parameters; ++i) {
        std::string name = get_text(in);
        const auto value = std::bit_cast<double>(in.get<std::uint64_t>());
        begin.parameters.push_back({std::move(name), value});
    }
}

void put_fields(WireWriter& out, const Begun& begun) {
    out.put(begun.epoch).put(begun.losses);
}

void get_fields(WireReader& in, Begun& begun) {
    begun.epoch = in.get<std::uint64_t>();
    begun.losses = in.get<std::uint64_t>();
}

void put_fields(WireWriter& out, const Draw& draw) {
    out.put(draw.epoch).put(draw.count).put(std::uint32_t{0});
}

void get_fields(WireReader& in, Draw& draw) {
    draw.epoch = in.get<std::uint64_t>();
    draw.count = in.get<std::uint32_t>();
    in.get<std::uint32_t>();
}

void put_fields(WireWriter& out, const Drawn& drawn) {
    out.put(drawn.epoch)
        .put(static_cast<std::uint32_t>(drawn.served.size()))
        .put(std::uint32_t{drawn.ended})
        .put_bytes(std::as_bytes(std::span{drawn.requested}))
        .put_bytes(std::as_bytes(std::span{drawn.served}))
        .put_bytes(std::as_bytes(std::span{drawn.kinds}));
}

void get_fields(WireReader& in, Drawn& drawn) {
    drawn.epoch = in.get<std::uint64_t>();
    const auto count = in.get<std::uint32_t>();
    drawn.ended = (in.get<std::uint32_t>() & 1U) != 0;
    drawn.requested = get_array<std::uint64_t>(in, count);
    drawn.served = get_array<std::uint64_t>(in, count);
    drawn.kinds = get_array<std::uint8_t>(in, count);
}

void put_fields(WireWriter& out, const Losses& losses) {
    out.put(losses.epoch)
        .put(static_cast<std::uint32_t>(losses.samples.size()))
        .put(std::uint32_t{0})
        .put_bytes(std::as_bytes(std::span{losses.samples}))
        .put_bytes(std::as_bytes(std::span{losses.losses}));
}

void get_fields(WireReader& in, Losses& losses) {
    losses.epoch = in.get<std::uint64_t>();
    const auto count = in.get<std::uint32_t>();
    in.get<std::uint32_t>();
    losses.samples = get_array<std::uint64_t>(in, count);
    losses.losses = get_array<float>(in, count);
}

void put_fields(WireWriter& out, const Similarity& similarity) {
    out.put(static_cast<std::uint32_t>(similarity.samples.size()))
        .put(std::uint32_t{0})
        .put_bytes(std::as_bytes(std::span{similarity.samples}))
        .put_bytes(std::as_bytes(std::span{similarity.hashes}));
}

void get_fields(WireReader& in, Similarity& similarity) {
    const auto count = in.get<std::uint32_t>();
    in.get<std::uint32_t>();
    similarity.samples = get_array<std::uint64_t>(in, count);
    similarity.hashes = get_array<std::uint64_t>(in, count);
}

void put_fields(WireWriter& out, const AskEpoch& ask) {
    out.put(ask.epoch);
}

void get_fields(WireReader& in, AskEpoch& ask) {
    ask.epoch = in.get<std::uint64_t>();
}

void put_fields(WireWriter& out, const EpochTally& tally) {
    std::ranges::for_each(tally_fields(tally), [&out](const auto* field) { out.put(*field); });
}

void get_fields(WireReader& in, EpochTally& tally) {
    std::ranges::for_each(
        tally_fields(tally), [&in](auto* field) { *field = in.get<std::uint64_t>(); });
}

void put_fields(WireWriter& /*out*/, const AskSnapshot& /*ask*/) {}

void get_fields(WireReader& /*in*/, AskSnapshot& /*ask*/) {}

void put_fields(WireWriter& out, const Snapshot& snapshot) {
    put_blob(out, snapshot.state);
}

void get_fields(WireReader& in, Snapshot& snapshot) {
    snapshot.state = get_blob(in);
}

}  // namespace stoker::local
