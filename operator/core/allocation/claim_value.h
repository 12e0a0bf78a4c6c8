#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/water_fill.h"

// Value of a claim's bytes. Pure; private to operator/core/allocation.
namespace stoker::control {

// Bytes that speed up a job that reads the claim; nominal quotas guarantee these. More bytes are granted
// only while no other job wants them.
Bytes useful_end(const ClaimTable& table, const Claim& claim);

// The claim's share if its node were divided evenly among the claims that jobs read. Beyond it,
// bytes of a job without a profile have almost no value.
Bytes even_share(const ClaimTable& table, const Claim& claim);

struct PieceOptions {
    bool fair = false;  // apply the weight of the account
    // Number of pieces per curve. Straight curves are also cut, into pieces of slightly falling
    // value, so that equal claims grow together instead of one after the other.
    std::size_t chord_count = 16;
    // True: bytes that a job does not need always have a small value. False: only those that the
    // last plan gave it.
    bool lasting = false;
};

// Value of each further byte of the claim to jobs, as a non-increasing sequence of pieces up to its limit.
// Unit: origin bytes/s saved per byte, or money/s per byte with Objective::kCost; weighted. With
// Objective::kEven the n-th byte of every dataset on a node has the same value. Bytes of the last
// grant count slightly more, so that small gains move no bytes.
std::vector<ValuePiece> value_pieces(
    const ClaimTable& table, const Claim& claim, const PieceOptions& options);

// Value of the claim's first `amount` bytes, in the unit of value_pieces() with PieceOptions::fair, but
// exact and independent of earlier grants and plans. Strictly concave as far as a job has a use for
// the bytes: of equal curves, the levelled division is worth most. Not for Objective::kEven.
double value_at(const ClaimTable& table, const Claim& claim, Bytes amount);

// Share of the user's reads that it fetches itself with `cached` bytes of the dataset on the node.
double fetched_with(const ClaimTable& table, const ClaimUser& user, Bytes cached);

// Origin bytes/s that the next byte after `cached` saves the user, unweighted.
double saved_by_next(const ClaimTable& table, const ClaimUser& user, Bytes cached);

// Predicted bytes/s of the job over all its nodes with this much cached, if the origin gives it
// `origin` bytes/s (0: unknown).
double predict_rate(
    const ClaimTable& table, std::size_t job, const ClaimBytes& cached, double origin);

}  // namespace stoker::control
