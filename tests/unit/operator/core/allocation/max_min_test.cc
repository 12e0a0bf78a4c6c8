#include "operator/core/allocation/max_min.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/core/allocation/make_claim_table.h"

namespace stoker::control {
namespace {

// Two jobs with a dataset of 100 bytes each on both nodes; the origin gives each 10 bytes/s.
std::vector<Demand> two_jobs(double first, double second) {
    Demand one = job_with_rates(first, 10);
    Demand other = job_with_rates(second, 10);
    other.job.name = "other";
    other.datasets[0].uid = "e";
    return {one, other};
}

TEST(MaxMin, EqualizesSpeedsOfTwoJobs) {
    std::vector<Demand> jobs = two_jobs(20, 40);
    const ClaimTable table = table_of(jobs);
    Rooms rooms = borrowing_rooms(table, ClaimBytes(table.claims.size()));
    rooms.nodes = {Bytes{80}, Bytes{80}};
    const ClaimBytes raised =
        raise_the_slowest(table, rooms, ClaimBytes(table.claims.size()), nullptr);
    // At relative speed v the jobs miss 0.5/v and 0.25/v of their datasets. Each node caches 80 of
    // the 200 bytes: (1 - 0.5/v) + (1 - 0.25/v) = 0.8, so v = 0.625.
    EXPECT_NEAR(static_cast<double>(raised[0].count()), 20, 1);
    EXPECT_NEAR(static_cast<double>(raised[1].count()), 60, 1);
}

TEST(MaxMin, JobOnAFullNodeDoesNotLimitOthers) {
    std::vector<Demand> jobs = two_jobs(20, 20);
    jobs[0].nodes = {"n1"};
    jobs[1].nodes = {"n2"};
    const ClaimTable table = table_of(jobs);
    Rooms rooms = borrowing_rooms(table, ClaimBytes(table.claims.size()));
    rooms.nodes = {Bytes{10}, Bytes{80}};
    EXPECT_EQ(
        raise_the_slowest(table, rooms, ClaimBytes(table.claims.size()), nullptr),
        (ClaimBytes{Bytes{10}, Bytes{50}}));
}

}  // namespace
}  // namespace stoker::control
