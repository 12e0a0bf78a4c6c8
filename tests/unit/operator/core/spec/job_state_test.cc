#include "operator/core/spec/job_state.h"

#include <set>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

TEST(JobState, HasADistinctTextForEachState) {
    std::set<std::string_view> words;
    for (int state = 0; state <= static_cast<int>(JobState::kFailed); ++state) {
        EXPECT_TRUE(words.insert(to_string(static_cast<JobState>(state))).second);
    }
    EXPECT_EQ(to_string(JobState::kRunning), "Running");
    EXPECT_EQ(to_string(JobState::kFailed), "Failed");
}

TEST(JobState, OnlyCompleteAndFailedAreFinal) {
    for (int state = 0; state <= static_cast<int>(JobState::kFailed); ++state) {
        const auto value = static_cast<JobState>(state);
        EXPECT_EQ(is_final(value), value == JobState::kComplete || value == JobState::kFailed);
    }
}

}  // namespace
}  // namespace stoker::control
