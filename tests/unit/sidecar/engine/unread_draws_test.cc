#include "sidecar/engine/unread_draws.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

UnreadDraws make() {
    return UnreadDraws{[](SampleIndex sample) { return Bytes{sample}; }};
}

TEST(UnreadDraws, CountsASampleOnceForAllItsReaders) {
    UnreadDraws draws = make();
    draws.on_drawn(5, false);
    draws.on_drawn(5, false);
    draws.on_drawn(7, false);
    EXPECT_EQ(draws.bytes(), Bytes{12});
    draws.on_read(5);
    EXPECT_EQ(draws.bytes(), Bytes{12});
    draws.on_read(5);
    EXPECT_EQ(draws.bytes(), Bytes{7});
}

TEST(UnreadDraws, ResidentsNeedNoRoom) {
    UnreadDraws draws = make();
    draws.on_drawn(5, true);
    EXPECT_EQ(draws.bytes(), Bytes{0});
    draws.on_residency(5, false);
    EXPECT_EQ(draws.bytes(), Bytes{5}) << "it was evicted before the read";
    draws.on_residency(5, true);
    draws.on_residency(5, true);
    EXPECT_EQ(draws.bytes(), Bytes{0});
    draws.on_residency(6, true);
    draws.on_read(5);
    EXPECT_EQ(draws.bytes(), Bytes{0});
}

}  // namespace
}  // namespace stoker::sidecar
