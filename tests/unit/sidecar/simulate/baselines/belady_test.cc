#include "sidecar/simulate/baselines/belady.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::simulate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct AllMayGo final {
    bool operator()(SampleIndex) const { return true; }
};

struct AllBut final {
    explicit AllBut(SampleIndex sample)
        : sample_(sample) {}

    bool operator()(SampleIndex sample) const { return sample != sample_; }

private:
    SampleIndex sample_;
};

// Even epochs read 0 1 2 3, odd ones 3 1 2 0.
std::vector<SampleIndex> order(std::uint64_t epoch) {
    return epoch % 2 == 0 ? std::vector<SampleIndex>{0, 1, 2, 3}
                          : std::vector<SampleIndex>{3, 1, 2, 0};
}

class BeladyTest : public testing::Test {
protected:
    bool make_room(
        SampleIndex incoming, const sidecar::EvictionPolicy::MayGo& may_go = AllMayGo{}) {
        victims_.clear();
        return belady_.make_room(incoming, Bytes{10}, may_go, victims_);
    }

    void read_into_cache(SampleIndex sample) {
        belady_.on_resident(sample, Bytes{10});
        belady_.on_read(sample, false);
    }

    Belady belady_{4, order};
    std::vector<SampleIndex> victims_;
};

TEST_F(BeladyTest, EvictsTheSampleNeededLast) {
    read_into_cache(0);         // next read at 7
    read_into_cache(1);         // next read at 5
    EXPECT_TRUE(make_room(2));  // next read at 6
    EXPECT_THAT(victims_, ElementsAre(0));
}

TEST_F(BeladyTest, RejectsASampleNeededLaterThanAllResidents) {
    read_into_cache(1);
    EXPECT_FALSE(make_room(0));
    EXPECT_THAT(victims_, IsEmpty());
}

TEST_F(BeladyTest, SkipsNonEvictableResidents) {
    read_into_cache(0);
    read_into_cache(2);
    EXPECT_TRUE(make_room(3, AllBut{0}));  // next reads: 3 at 4, 2 at 6
    EXPECT_THAT(victims_, ElementsAre(2));
}

TEST_F(BeladyTest, KnowsTheEpochAfterTheNext) {
    for (const SampleIndex sample : {0, 1, 2, 3}) {
        read_into_cache(sample);
    }
    for (const SampleIndex sample : {3, 1}) {
        belady_.on_read(sample, true);
    }
    // Next reads: 2 at 6, 0 at 7, then in epoch 2 sample 1 at 9 and 3 at 11.
    victims_.clear();
    belady_.shrink(Bytes{20}, victims_);
    EXPECT_THAT(victims_, ElementsAre(3, 1));
}

TEST_F(BeladyTest, ForgetsRemovedSamples) {
    read_into_cache(0);
    belady_.on_gone(0);
    EXPECT_FALSE(make_room(1));
}

}  // namespace
}  // namespace stoker::simulate
