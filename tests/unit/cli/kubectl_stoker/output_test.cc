// Output for people, compared with reviewed files; and the width of every line.
#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/kubectl_stoker/quota_tree.h"
#include "cli/kubectl_stoker/top.h"
#include "cli/kubectl_stoker/what_if.h"
#include "cli/kubectl_stoker/where.h"
#include "cli/kubectl_stoker/why.h"
#include "tests/unit/cli/kubectl_stoker/busy_cluster.h"
#include "tests/unit/cli/kubectl_stoker/golden.h"

namespace stoker::cli {
namespace {

constexpr std::size_t kColumnsMax = 100;
constexpr std::size_t kColumnsOfAllMax = 110;  // width with -A

std::size_t widest(const std::string& text) {
    std::size_t most = 0;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
        const auto characters = std::ranges::count_if(
            line, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; });
        most = std::max(most, static_cast<std::size_t>(characters));
    }
    return most;
}

void expect_page(
    const std::string& name, const std::string& text, std::size_t columns_max = kColumnsMax) {
    expect_golden(name, text);
    EXPECT_LE(widest(text), columns_max) << text;
    EXPECT_EQ(text.find(" \n"), std::string::npos) << "a space at the end of a line";
}

WhyFacts facts_of(const BusyCluster& cluster, const std::string& name) {
    const control::AllocationSnapshot snapshot = cluster.snapshot();
    WhyFacts facts;
    facts.job = cluster.job(name);
    facts.explanation = control::explain_job(snapshot.view, facts.job.meta.key());
    facts.view = snapshot.view;
    facts.age = snapshot.age();
    facts.version = snapshot.version;
    return facts;
}

WhatIf if_only(const std::vector<control::Change>& changes) {
    return *what_if(BusyCluster{}.snapshot().view, changes);
}

TEST(Output, WhereListsTheNodesOfEachDataset) {
    control::Dataset imagenet;
    imagenet.meta.ns = "vision";
    imagenet.meta.name = "imagenet";
    imagenet.status.samples = 1'280'000;
    const auto bytes = [](std::uint64_t count) {
        return static_cast<std::int64_t>(gib(count).count());
    };
    imagenet.status.placements = {
        {"nvme", "gpu-2", bytes(35), 320'000}, {"nvme", "gpu-1", bytes(70), 640'000}};
    control::Dataset coco;
    coco.meta.ns = "vision";
    coco.meta.name = "coco";
    const std::vector<WhereRow> rows = where_rows({imagenet, coco});
    expect_page("where.txt", where_text(rows, false));
    EXPECT_THAT(where_text(rows, true), testing::HasSubstr("NAMESPACE   DATASET"));
    EXPECT_EQ(
        where_json({rows.back()}),
        R"({"placements":[{"namespace":"vision","dataset":"imagenet","pool":"nvme","node":"gpu-2",)"
        R"("cachedBytes":37580963840,"cachedSamples":320000,"cachedPercentage":25}]})"
        "\n");
}

TEST(Output, TopSortsBySavedTime) {
    expect_page("top-all.txt", top_text(top_rows(BusyCluster{}.jobs()), true), kColumnsOfAllMax);
    std::vector<control::TrainingJob> vision = BusyCluster{}.jobs();
    std::erase_if(vision, [](const auto& job) { return job.meta.ns != "vision"; });
    expect_page("top-namespace.txt", top_text(top_rows(vision), false));
}

TEST(Output, WhyFitsOneScreen) {
    const BusyCluster cluster;
    for (const char* name : {"resnet", "vit", "whisper", "bert", "new"}) {
        const std::string text = why_text(facts_of(cluster, name));
        expect_page(std::string{"why-"} + name + ".txt", text);
        EXPECT_LE(std::ranges::count(text, '\n'), 42) << text;
    }
}

TEST(Output, WhyWorksFromTheStatusAlone) {
    WhyFacts facts = facts_of(BusyCluster{}, "resnet");
    facts.explanation.reset();
    expect_page("why-from-status.txt", why_text(facts));
}

TEST(Output, WhyExplainsMissingDatasetAccess) {
    WhyFacts facts;
    facts.job.meta.ns = "vision";
    facts.job.meta.name = "resnet";
    facts.job.status.conditions = {
        {"DataReady", control::ConditionStatus::kFalse, 1, {}, "NotShared", "Dataset a/b is not."}};
    const std::string text = why_text(facts);
    EXPECT_NE(text.find("Data: NotShared\n  Dataset a/b is not.\n"), std::string::npos) << text;
    facts.job.status.conditions[0].status = control::ConditionStatus::kTrue;
    EXPECT_EQ(why_text(facts).find("Data:"), std::string::npos);
}

TEST(Output, WhyNamesTheChangedOriginKey) {
    WhyFacts facts = facts_of(BusyCluster{}, "resnet");
    facts.job.status.conditions.push_back(
        {"OriginUnchanged",
         control::ConditionStatus::kFalse,
         1,
         {},
         "OriginChanged",
         "Attempt 1 was ended: dataset train: rank 3 listed another revision than rank 0; the "
         "first key that differs is cat/7.png."});
    EXPECT_NE(why_text(facts).find("Origin: OriginChanged\n"), std::string::npos);
    facts.explanation.reset();
    expect_page("why-origin-changed.txt", why_text(facts));
    expect_golden("why-origin-changed.json", why_json(facts));
    facts.job.status.conditions.back().status = control::ConditionStatus::kTrue;
    EXPECT_EQ(why_text(facts).find("Origin:"), std::string::npos);
}

TEST(Output, WhatIfShowsBeforeAndAfter) {
    expect_page(
        "what-if-add.txt", what_if_text(if_only({control::AddCapacity{"nvme", gib(800), false}})));
    expect_page(
        "what-if-delete.txt", what_if_text(if_only({control::RemoveJob{{"vision", "resnet"}}})));
}

TEST(Output, QuotaPrintsATree) {
    const BusyCluster cluster;
    expect_page("quota.txt", quota_text({cluster.pools(), cluster.quotas(), cluster.jobs()}));
    expect_page("quota-no-pools.txt", quota_text({{}, cluster.quotas(), {}}));
}

TEST(Output, JsonMatchesTheGoldenFiles) {
    const BusyCluster cluster;
    expect_golden("top.json", top_json(top_rows(cluster.jobs())));
    expect_golden("quota.json", quota_json({cluster.pools(), cluster.quotas(), cluster.jobs()}));
    expect_golden(
        "what-if.json", what_if_json(if_only({control::RemoveJob{{"vision", "resnet"}}})));
    WhyFacts facts = facts_of(cluster, "whisper");
    facts.explanation->curve.resize(3);
    expect_golden("why.json", why_json(facts));
    facts.explanation.reset();
    expect_golden("why-from-status.json", why_json(facts));
}

}  // namespace
}  // namespace stoker::cli
