#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "operator/core/allocation/claim_table.h"

namespace stoker::control {

// Share of a user's reads that its claim's node fetches from the origin, by bytes of the dataset
// there. With peers each of n nodes owns a share of the samples and fetches it for all, so with c
// bytes on each node they hold n c together: this is the dataset's curve at n c. Refers to the job,
// which must outlive it. Pure; private to operator/core/allocation.
class UserCurve {
public:
    UserCurve(const PlannedJob& job, const ClaimUser& user)
        : curve_(job.curves[user.dataset]),
          owners_(user.owners) {}

    [[nodiscard]] double miss_mass(Bytes cached) const {
        return curve_.miss_mass(cached * owners_);
    }

    // Miss mass saved by the next byte.
    [[nodiscard]] double marginal(Bytes cached) const {
        return curve_.marginal(cached * owners_) * static_cast<double>(owners_);
    }

    // Fewest bytes with miss_mass() <= mass.
    [[nodiscard]] Bytes bytes_for(double mass) const { return each(curve_.bytes_for(mass)); }

    // Bytes of the dataset that the node owns: all of them without peers.
    [[nodiscard]] Bytes part() const { return each(curve_.dataset()); }

    // As MissCurve::knots(), up to part().
    [[nodiscard]] std::vector<Bytes> knots(std::size_t count, Bytes step) const {
        std::vector<Bytes> result = curve_.knots(count, step * owners_);
        for (Bytes& knot : result) {
            knot = each(knot);
        }
        return result;
    }

private:
    [[nodiscard]] Bytes each(Bytes all) const {
        return Bytes{all.count() / owners_ + (all.count() % owners_ == 0 ? 0 : 1)};
    }

    const MissCurve& curve_;
    std::uint64_t owners_;
};

}  // namespace stoker::control
