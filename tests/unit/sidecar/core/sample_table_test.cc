#include "sidecar/core/sample_table.h"

#include <gtest/gtest.h>

#include "common/domain/segment_format.h"
#include "tests/support/dataset.h"

namespace stoker::sidecar {
namespace {

using domain::SegmentClass;

class SampleTableTest : public testing::Test {
protected:
    [[nodiscard]] Bytes record(SampleIndex sample) const {
        return Bytes{domain::record_bytes(dataset.manifest().size_bytes(domain::SampleId{sample}))};
    }

    test::Dataset dataset{{100, 5000, 0}};
    SampleTable table{dataset.manifest()};
};

TEST_F(SampleTableTest, ReservesBytesOfFetchesInFlight) {
    table.start(1, SegmentClass::kWindow);
    EXPECT_EQ(table.account().window, record(1));
    EXPECT_EQ(table.account().in_flight, Bytes{5000});
    EXPECT_EQ(table.account().in_flight_samples, 1U);
    EXPECT_EQ(table.account().window_samples, 0U);
}

TEST_F(SampleTableTest, StoredSampleFreesMemoryAndKeepsItsClass) {
    table.start(1, SegmentClass::kResident);
    table.finish(1);
    EXPECT_EQ(table.account().in_flight, Bytes::zero());
    EXPECT_EQ(table.account().resident, record(1));
    EXPECT_EQ(table.account().resident_samples, 1U);
    EXPECT_EQ(table.at(1).state, SampleState::kStored);
}

TEST_F(SampleTableTest, AbandonedFetchFreesItsBytes) {
    table.start(1, SegmentClass::kResident);
    table.remove(1);
    EXPECT_EQ(table.account(), ByteAccount{});
    EXPECT_EQ(table.at(1).state, SampleState::kAbsent);
}

TEST_F(SampleTableTest, RemovedSampleFreesItsBytes) {
    table.adopt(0, SegmentClass::kResident);
    table.adopt(2, SegmentClass::kWindow);
    table.remove(0);
    table.remove(2);
    EXPECT_EQ(table.account(), ByteAccount{});
}

TEST_F(SampleTableTest, ResidentThatMustGoIsCountedSeparately) {
    table.adopt(1, SegmentClass::kResident);
    table.doom(1);
    EXPECT_EQ(table.account().resident, Bytes::zero());
    EXPECT_EQ(table.account().doomed, record(1));
    EXPECT_EQ(table.account().resident_samples, 0U);
    EXPECT_TRUE(table.is_superfluous(1));
    table.remove(1);
    EXPECT_EQ(table.account(), ByteAccount{});
}

TEST_F(SampleTableTest, WindowSampleIsSuperfluousIfNobodyNeedsHoldsOrRequestsIt) {
    table.adopt(0, SegmentClass::kWindow);
    EXPECT_TRUE(table.is_superfluous(0));
    SampleRecord& record = table.at(0);
    record.needs = 1;
    EXPECT_FALSE(table.is_superfluous(0));
    record.needs = 0;
    record.holds = 1;
    EXPECT_FALSE(table.is_superfluous(0));
    record.holds = 0;
    record.demanded = true;
    EXPECT_FALSE(table.is_superfluous(0));
    record.demanded = false;
    record.verifying = true;
    EXPECT_FALSE(table.is_superfluous(0));
}

TEST_F(SampleTableTest, ResidentIsNeverSuperfluous) {
    table.adopt(0, SegmentClass::kResident);
    EXPECT_FALSE(table.is_superfluous(0));
}

TEST_F(SampleTableTest, InvalidTransitionsCrash) {
    table.start(1, SegmentClass::kWindow);
    EXPECT_DEATH(table.start(1, SegmentClass::kWindow), "at most one fetch");
    table.finish(1);
    EXPECT_DEATH(table.finish(1), "not in flight");
}

}  // namespace
}  // namespace stoker::sidecar
