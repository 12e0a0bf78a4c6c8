#include "sidecar/core/eviction/never_evict.h"

#include <gmock/gmock.h>

#include "tests/unit/sidecar/core/eviction/policy_calls.h"

namespace stoker::test {
namespace {

using sidecar::NeverEvict;
using testing::IsEmpty;

TEST(NeverEvict, EvictsNoResident) {
    NeverEvict policy;
    admit(policy, {0, 1, 2});
    EXPECT_THAT(make_room(policy, 7, Bytes{1}), IsEmpty());
}

TEST(NeverEvict, ShrinksInAFixedOrderForAnyArrivalOrder) {
    NeverEvict one;
    NeverEvict other;
    admit(one, {0, 1, 2, 3, 4, 5, 6, 7});
    admit(other, {7, 3, 5, 1, 0, 2, 4, 6});
    const auto victims = shrink(one, Bytes{35});
    EXPECT_THAT(victims, testing::SizeIs(4));
    EXPECT_EQ(shrink(other, Bytes{35}), victims);
}

}  // namespace
}  // namespace stoker::test
