// ImportanceSampler's part of a checkpoint: one byte per sample that tells in which of 255 equally
// large classes of all losses its loss is (each class has one value), and for each rank in
// mid-epoch two bits per sample for its decisions. Little-endian; version first.
#include <algorithm>
#include <array>

#include "common/base/wire.h"
#include "sidecar/core/sampling/importance_sampler.h"

namespace stoker::sidecar {

namespace {

constexpr std::uint32_t kVersion = 0x31534949;  // "IIS1"
constexpr std::size_t kParts = 255;             // plus 0 for "no loss"
constexpr std::uint32_t kSampledLosses = 1U << 16U;

// Bounds the state that an untrusted snapshot can create; no node has more ranks than this.
constexpr std::uint32_t kReadersMax = 64;

using Parts = std::array<float, kParts>;

// The median loss of each class, computed from a uniform choice of the losses; ascending.
Parts parts_of(const LossRanks& losses) {
    std::vector<float> sampled;
    const std::uint32_t stride = 1 + losses.count() / kSampledLosses;
    for (std::uint32_t sample = 0; sample < losses.count(); ++sample) {
        const bool taken = sample % stride == 0 || sampled.empty();
        if (taken && losses.knows(sample)) {
            sampled.push_back(losses.loss(sample));
        }
    }
    std::sort(sampled.begin(), sampled.end());
    Parts parts{};
    for (std::size_t i = 0; i < kParts && !sampled.empty(); ++i) {
        parts[i] = sampled[(2 * i + 1) * sampled.size() / (2 * kParts)];
    }
    return parts;
}

std::uint8_t part_of(const Parts& parts, float loss) {
    const auto place = std::lower_bound(parts.begin(), parts.end() - 1, loss);
    return static_cast<std::uint8_t>(1 + (place - parts.begin()));
}

// Reads `count` bits into the front of `size` flags; the others are false.
std::vector<bool> get_bits(WireReader& wire, std::uint32_t count, std::uint32_t size) {
    auto bits = wire.get_bits(count);
    bits.resize(size);
    return bits;
}

}  // namespace

std::string ImportanceSampler::snapshot() const {
    WireWriter wire;
    wire.put(kVersion).put(losses_.count()).put(settings_.ranks).put(settings_.seed);
    const Parts parts = parts_of(losses_);
    wire.put_bytes(std::as_bytes(std::span{parts}));
    for (std::uint32_t sample = 0; sample < losses_.count(); ++sample) {
        const bool known = losses_.knows(sample);
        wire.put(known ? part_of(parts, losses_.loss(sample)) : std::uint8_t{0});
    }
    wire.put(static_cast<std::uint32_t>(readers_.size()));
    for (const auto& [rank, reader] : readers_) {
        const ImportanceWalk& walk = reader.walk;
        wire.put(rank)
            .put(walk.share().epoch())
            .put(static_cast<std::uint8_t>(walk.full() ? 1 : 0));
        wire.put(walk.decided());
        wire.put_bits(walk.kept(), walk.decided()).put_bits(walk.important(), walk.decided());
    }
    return wire.text();
}

bool ImportanceSampler::restore(std::string_view snapshot) {
    WireReader wire(std::as_bytes(std::span{snapshot}));
    const bool known =
        wire.get<std::uint32_t>() == kVersion && wire.get<std::uint32_t>() == losses_.count();
    const bool same_ranks = wire.get<std::uint32_t>() == settings_.ranks;
    const bool ours = known && wire.get<std::uint64_t>() == settings_.seed;
    Parts parts{};
    const auto raw_parts = wire.get_bytes(sizeof(parts));
    const auto raw_losses = wire.get_bytes(losses_.count());
    if (!ours || !wire.ok()) {
        return false;
    }
    std::memcpy(parts.data(), raw_parts.data(), sizeof(parts));
    for (std::uint32_t sample = 0; sample < losses_.count(); ++sample) {
        if (const auto part = std::to_integer<std::size_t>(raw_losses[sample]); part > 0) {
            losses_.record(sample, parts[part - 1]);
        }
    }
    losses_.start();
    losses_.advance(~std::uint64_t{0});
    return !same_ranks || restore_readers(wire);  // other ranks decided on other shares
}

bool ImportanceSampler::restore_readers(WireReader& wire) {
    const auto readers = wire.get<std::uint32_t>();
    if (readers > kReadersMax) {
        return false;
    }
    for (std::uint32_t i = 0; i < readers && wire.ok(); ++i) {
        const auto rank = wire.get<std::uint32_t>();
        const auto epoch = wire.get<std::uint64_t>();
        const bool full = wire.get<std::uint8_t>() != 0;
        const auto decided = wire.get<std::uint32_t>();
        if (!wire.ok() || rank >= settings_.ranks || decided > losses_.count()) {
            return false;
        }
        Reader& reader = reader_of(rank);
        reader.walk.begin(epoch, full, losses_);
        const auto size = static_cast<std::uint32_t>(reader.walk.kept().size());
        if (decided > size) {
            return false;
        }
        auto kept = get_bits(wire, decided, size);
        auto important = get_bits(wire, decided, size);
        if (!wire.ok() || !reader.walk.adopt(std::move(kept), std::move(important), decided)) {
            return false;
        }
        rebuilt_for_ = std::max(rebuilt_for_, epoch + 1);
        restart(reader);
    }
    return wire.ok();
}

}  // namespace stoker::sidecar
