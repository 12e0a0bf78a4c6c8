#include "node/service/pool_keeper.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/manual_clock.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/node/service/fakes.h"

namespace stoker::node {
namespace {

namespace fs = std::filesystem;

class Keeper : public ::testing::Test {
protected:
    static v1::NodeOrders orders(const std::string& path = "/mnt/nvme") {
        v1::NodeOrders result;
        auto& pool = *result.add_pools();
        pool.set_pool("nvme");
        pool.set_path(path);
        return result;
    }

    static v1::NodeOrders sweep_orders(const std::string& id, const std::string& expired) {
        v1::NodeOrders result = orders();
        result.mutable_sweep()->set_id(id);
        result.mutable_sweep()->set_pool("nvme");
        result.mutable_sweep()->set_path("/mnt/nvme");
        result.mutable_sweep()->add_expired(expired);
        return result;
    }

    v1::NodeReport report() {
        v1::NodeReport result;
        keeper_.fill(result);
        return result;
    }

    fs::path make_directory(const std::string& uid) {
        const fs::path made = fs::path{folder_.path()} / "mnt/nvme/team" / uid;
        fs::create_directories(made / "control");
        fs::create_directories(made / "data/segments");
        std::ofstream{made / "data/segments/1.seg"} << std::string(100'000, 'x');
        return made;
    }

    stoker::test::TempFolder folder_;
    UniqueFd root_{::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY)};
    test::FakeMounts mounts_;
    testing::ManualClock clock_;
    PoolKeeper keeper_{{mounts_, clock_, root_.get(), {::geteuid(), ::getegid()}}};
};

TEST_F(Keeper, ReportsNothingBeforeOrders) {
    EXPECT_EQ(report().pools_size(), 0);
}

TEST_F(Keeper, CreatesThePoolsDirectoryAndReportsItsSpace) {
    keeper_.take(orders());
    const auto told = report();
    ASSERT_EQ(told.pools_size(), 1);
    EXPECT_EQ(told.pools(0).verdict(), v1::POOL_VERDICT_READY);
    EXPECT_GT(told.pools(0).capacity_bytes(), 0U);
    EXPECT_TRUE(fs::exists(fs::path{folder_.path()} / "mnt/nvme/.stoker-pool"));
}

TEST_F(Keeper, ReportsWhyADirectoryCannotBeAPool) {
    fs::create_directories(fs::path{folder_.path()} / "data/photos");
    const auto verdict = [&](const std::string& path) {
        keeper_.take(orders(path));
        return report().pools(0).verdict();
    };
    EXPECT_EQ(verdict("/data"), v1::POOL_VERDICT_NOT_EMPTY);
    EXPECT_EQ(verdict("/etc"), v1::POOL_VERDICT_REFUSED);
    std::ofstream{fs::path{folder_.path()} / "file"} << "x";
    EXPECT_EQ(verdict("/file"), v1::POOL_VERDICT_REFUSED);
    EXPECT_EQ(verdict("/mnt/nvme"), v1::POOL_VERDICT_READY);
    fs::rename(fs::path{folder_.path()} / "mnt/nvme", fs::path{folder_.path()} / "mnt/of-nvme");
    std::ofstream{fs::path{folder_.path()} / "mnt/of-nvme/.stoker-pool"}
        << "{\"schema\":1,\"pool\":\"ssd\"}\n";
    EXPECT_EQ(verdict("/mnt/of-nvme"), v1::POOL_VERDICT_OTHER_POOL);
}

// Protobuf texts must be UTF-8: the operator refuses a whole report with an invalid text.
TEST_F(Keeper, NamesWithAnyBytesKeepTheReportValid) {
    const fs::path root{folder_.path()};
    fs::create_directories(root / "data/\xe9t\xe9");
    fs::create_directories(root / "other");
    std::ofstream{root / "other/.stoker-pool"} << "{\"schema\":1,\"pool\":\"\xff\"}\n";
    for (const std::string path : {"/data", "/other"}) {
        keeper_.take(orders(path));
        v1::NodeReport read;
        EXPECT_TRUE(read.ParseFromString(report().SerializeAsString())) << path;
    }
    keeper_.take(orders());
    report();
    make_directory("d1");
    make_directory("d\xff");
    fs::create_directories(root / "mnt/nvme/t\xff/d1");
    clock_.advance(PoolKeeper::kMeasureEvery);
    v1::NodeReport read;
    ASSERT_TRUE(read.ParseFromString(report().SerializeAsString()));
    EXPECT_EQ(read.pools(0).verdict(), v1::POOL_VERDICT_READY);
    EXPECT_EQ(read.pools(0).directories_size(), 1);
}

TEST_F(Keeper, MeasuresOnceAMinute) {
    keeper_.take(orders());
    EXPECT_EQ(report().pools(0).directories_size(), 0);
    make_directory("d1");
    EXPECT_EQ(report().pools(0).directories_size(), 0);
    clock_.advance(PoolKeeper::kMeasureEvery);
    const auto told = report();
    ASSERT_EQ(told.pools(0).directories_size(), 1);
    EXPECT_EQ(told.pools(0).directories(0).dataset_uid(), "d1");
    EXPECT_GE(told.pools(0).directories(0).bytes(), 100'000U);
    EXPECT_FALSE(told.pools(0).directories(0).mounted());
}

TEST_F(Keeper, SweepsOnceAndReportsUntilConfirmed) {
    keeper_.take(orders());
    EXPECT_EQ(report().pools(0).verdict(), v1::POOL_VERDICT_READY);
    const fs::path made = make_directory("d1");
    keeper_.take(sweep_orders("s1", "d1"));
    EXPECT_FALSE(fs::exists(made));
    for (int i = 0; i < 2; ++i) {
        const auto told = report();
        ASSERT_EQ(told.sweeps_size(), 1);
        EXPECT_TRUE(told.sweeps(0).succeeded());
        EXPECT_EQ(told.sweeps(0).removed(), 1U);
    }
    make_directory("d1");
    keeper_.take(sweep_orders("s1", "d1"));
    EXPECT_TRUE(fs::exists(made)) << "the same order is not done twice";
    auto confirmed = orders();
    confirmed.add_confirmed_sweeps("s1");
    keeper_.take(confirmed);
    EXPECT_EQ(report().sweeps_size(), 0);
}

TEST_F(Keeper, InvalidOrderRemovesNothing) {
    keeper_.take(orders());
    report();
    const fs::path made = make_directory("d1");
    auto bad = sweep_orders("s1", "d1");
    bad.mutable_sweep()->add_kept("team");
    keeper_.take(bad);
    EXPECT_TRUE(fs::exists(made));
    EXPECT_FALSE(report().sweeps(0).succeeded());
    EXPECT_FALSE(report().sweeps(0).message().empty());
}

}  // namespace
}  // namespace stoker::node
