#include "operator/sidecars/node_rules.h"

#include <functional>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

const NodeProgramAccount kAccount{"stoker-system", "stoker-node"};

NodeReport make_report() {
    NodeReport report;
    report.node = "n1";
    PoolState pool;
    pool.pool = "nvme";
    pool.path = "/mnt/nvme";
    pool.verdict = PoolVerdict::kReady;
    pool.directories = {{"ml", "d1", gib(1), true}};
    report.pools = {pool};
    report.sweeps = {{"7", true, "", 2}};
    return report;
}

TEST(NodeRules, AcceptAValidReport) {
    EXPECT_TRUE(validate_node_report(make_report()));
    NodeReport empty;
    empty.node = "n1";
    EXPECT_TRUE(validate_node_report(empty)) << "the first call, before it knows its pools";
}

TEST(NodeRules, RejectImpossibleReports) {
    struct Case {
        const char* what;
        std::function<void(NodeReport&)> spoil;
    };

    const std::string long_name(254, 'n');
    const Case cases[] = {
        {"no node", [](NodeReport& it) { it.node.clear(); }},
        {"a long node", [&](NodeReport& it) { it.node = long_name; }},
        {"a long boot id", [&](NodeReport& it) { it.boot_id = long_name; }},
        {"a long version", [&](NodeReport& it) { it.version = long_name; }},
        {"no pool", [](NodeReport& it) { it.pools[0].pool.clear(); }},
        {"a pool twice", [](NodeReport& it) { it.pools.push_back(it.pools[0]); }},
        {"many pools", [](NodeReport& it) { it.pools.resize(kNodePoolCountMax + 1); }},
        {"a long path", [](NodeReport& it) { it.pools[0].path = std::string(4097, 'p'); }},
        {"many bytes", [](NodeReport& it) { it.pools[0].capacity = Bytes::unlimited(); }},
        {"many free bytes", [](NodeReport& it) { it.pools[0].free = Bytes::unlimited(); }},
        {"much use", [](NodeReport& it) { it.pools[0].directories[0].bytes = Bytes::unlimited(); }},
        {"no namespace", [](NodeReport& it) { it.pools[0].directories[0].ns.clear(); }},
        {"no uid", [](NodeReport& it) { it.pools[0].directories[0].dataset_uid.clear(); }},
        {"many directories",
         [](NodeReport& it) {
             it.pools[0].directories.resize(kNodeDirectoryCountMax + 1, it.pools[0].directories[0]);
         }},
        {"a sweep without id", [](NodeReport& it) { it.sweeps[0].id.clear(); }},
        {"many sweeps",
         [](NodeReport& it) { it.sweeps.resize(kNodeSweepCountMax + 1, it.sweeps[0]); }},
        {"much removed", [](NodeReport& it) { it.sweeps[0].removed = kNodeNumberMax + 1; }},
    };
    for (const Case& c : cases) {
        NodeReport report = make_report();
        c.spoil(report);
        const Status valid = validate_node_report(report);
        ASSERT_FALSE(valid) << c.what;
        EXPECT_EQ(valid.error().code, ErrorCode::kInvalidArgument) << c.what;
    }
}

TEST(NodeRules, CutLongMessages) {
    NodeReport report = make_report();
    report.pools[0].message = std::string(5000, 'm');
    report.sweeps[0].message = std::string(1023, 'm') + "ß";
    trim_texts(report);
    EXPECT_EQ(report.pools[0].message.size(), kMessageBytesMax);
    EXPECT_EQ(report.sweeps[0].message, std::string(1023, 'm'));
}

TEST(NodeRules, OnlyTheNodeProgramsAccountMayReport) {
    EXPECT_TRUE(check_node_program({"stoker-system", "stoker-node", "p", "n1"}, kAccount));
    for (const PodIdentity& stranger :
         {PodIdentity{"ml", "stoker-node", "p", "n1"},
          PodIdentity{"stoker-system", "default", "p", "n1"},
          PodIdentity{}}) {
        const Status allowed = check_node_program(stranger, kAccount);
        ASSERT_FALSE(allowed);
        EXPECT_EQ(allowed.error().code, ErrorCode::kForbidden);
    }
}

TEST(NodeRules, NodeProgramReportsItsOwnNodeOnly) {
    const PodIdentity on_n1{"stoker-system", "stoker-node", "p", "n1"};
    EXPECT_TRUE(check_node(on_n1, "", "n1"));
    EXPECT_EQ(check_node(on_n1, "", "n2").error().code, ErrorCode::kForbidden);
    EXPECT_EQ(check_node(on_n1, "n2", "n2").error().code, ErrorCode::kForbidden)
        << "the token counts, not the cache";
    const PodIdentity untold{"stoker-system", "stoker-node", "p", ""};
    EXPECT_TRUE(check_node(untold, "n1", "n1"));
    EXPECT_EQ(check_node(untold, "n1", "n2").error().code, ErrorCode::kForbidden);
    EXPECT_EQ(check_node(untold, "", "n1").error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(check_node(untold, "", "").error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace stoker::control
