#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "tests/world/seed_tests.h"
#include "tests/world/world.h"

namespace stoker::world {

// A scenario in the simulated world: one event, and what must follow it. The world's oracle checks
// its promises meanwhile.
class Scenario : public ::testing::Test {
protected:
    World& make(Size size, Script script = {}) {
        script.lasts = std::min<Duration>(script.lasts, std::chrono::minutes{4});
        return world_.emplace(first_seed(), size, script);
    }

    void run_for(Duration time) { ASSERT_EQ(world_->run_for(time), ""); }

    // Every trainer ends its epoch, and every promise is kept.
    void TearDown() override {
        if (world_ && !HasFatalFailure()) {
            const Outcome outcome = world_->run();
            EXPECT_EQ(outcome.accusation, "") << last_lines(outcome.log, 60);
        }
    }

    // The samples that the dataset's leader holds as residents.
    [[nodiscard]] std::uint64_t residents() const {
        return world_->status(0).bytes.resident_samples;
    }

    std::optional<World> world_;
};

}  // namespace stoker::world
