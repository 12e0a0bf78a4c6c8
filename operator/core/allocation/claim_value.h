#pragma once

#include <cstddef>
#include <vector>

#include "operator/core/allocation/claim_table.h"
#include "operator/core/allocation/water_fill.h"

// What bytes of claims are worth. Pure; private to operator/core/allocation.
namespace stoker::control {

// The bytes that make a user of the claim faster: what a nominal quota guarantees. Beyond them only
// what nobody else wants is granted.
Bytes useful_end(const ClaimTable& table, const Claim& claim);

// What the claim would get if its node were divided evenly: more is hardly worth anything to a job
// that nothing is known of.
Bytes even_share(const ClaimTable& table, const Claim& claim);

struct PieceOptions {
    bool fair = false;  // with the weight of the account
    // Parts of a smooth curve. A straight one has as many parts, each worth a hair less than the
    // one before it, so that equals rise together instead of one after the other.
    std::size_t chord_count = 16;
};

// What one more byte of the claim saves at the origin, as a never rising sequence of pieces up to
// its limit: bytes/s per byte, or money/s per byte with Objective::kCost, weighted; with
// Objective::kEven every dataset's n-th byte of a node is worth the same. Bytes of the last grant
// count a little more, so that nothing moves for less.
std::vector<ValuePiece> value_pieces(
    const ClaimTable& table, const Claim& claim, const PieceOptions& options);

// Share of what the user reads of the dataset on the node that it fetches itself, with so much
// cached.
double fetched_with(const ClaimTable& table, const ClaimUser& user, Bytes cached);

// Bytes/s at the origin that the byte after `cached` saves the user, unweighted.
double saved_by_next(const ClaimTable& table, const ClaimUser& user, Bytes cached);

// Bytes/s that the job reads on all its nodes with so much cached, where the origin gives it
// `origin` bytes/s (0: not known).
double predict_rate(
    const ClaimTable& table, std::size_t job, const ClaimBytes& cached, double origin);

}  // namespace stoker::control
