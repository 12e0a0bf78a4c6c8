#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/water_fill.h"

// Value of a claim's bytes. Pure; private to operator/core/allocation.
namespace stoker::control {

// Bytes that speed up a user of the claim: a nominal quota guarantees these. More are granted only
// if nobody else wants them.
Bytes useful_end(const ClaimTable& table, const Claim& claim);

// The claim's share if its node were divided evenly. More has almost no value for a job without a
// profile.
Bytes even_share(const ClaimTable& table, const Claim& claim);

struct PieceOptions {
    bool fair = false;  // apply the weight of the account
    // Number of pieces per curve. A straight curve is cut as well, into pieces of slightly falling
    // value, so that equal claims grow together instead of one after the other.
    std::size_t chord_count = 16;
};

// What one more byte of the claim saves at the origin, as a non-increasing sequence of pieces up to
// its limit: bytes/s per byte, or money/s per byte with Objective::kCost, weighted. With
// Objective::kEven the n-th byte of every dataset on a node has the same value. Bytes of the last
// grant count a little more, so that small gains move nothing.
std::vector<ValuePiece> value_pieces(
    const ClaimTable& table, const Claim& claim, const PieceOptions& options);

// Share of its reads that the user fetches itself with `cached` bytes of the dataset on the node.
double fetched_with(const ClaimTable& table, const ClaimUser& user, Bytes cached);

// Origin bytes/s that the byte after `cached` saves the user, unweighted.
double saved_by_next(const ClaimTable& table, const ClaimUser& user, Bytes cached);

// Bytes/s that the job reads on all its nodes with this much cached, if the origin gives it
// `origin` bytes/s (0: unknown).
double predict_rate(
    const ClaimTable& table, std::size_t job, const ClaimBytes& cached, double origin);

}  // namespace stoker::control
