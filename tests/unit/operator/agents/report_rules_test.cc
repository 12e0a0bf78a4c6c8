#include "operator/agents/report_rules.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

AgentHello good_hello() {
    AgentHello hello;
    hello.namespace_name = "ml";
    hello.pod = "mnist-a1-0-x";
    hello.node = "node-1";
    hello.training_job = "mnist";
    hello.training_job_uid = "j1";
    hello.version = "0.1.0";
    hello.datasets = {{"train", "d1"}};
    return hello;
}

ReportBody good_report(std::uint64_t sequence) {
    ReportBody report;
    report.sequence = sequence;
    DatasetReport dataset;
    dataset.name = "train";
    dataset.dataset_uid = "d1";
    dataset.hit_samples = 10;
    dataset.granted_bytes = Bytes::unlimited();
    dataset.leader = true;
    dataset.sketches = {{"j1", 4, {0.75F, 0.25F}, 1.5}};
    report.datasets = {dataset};
    report.trainer.samples = 10;
    report.trainer.wait = std::chrono::seconds{3};
    return report;
}

ErrorCode code_of(const Status& status) {
    return status ? ErrorCode::kInternal : status.error().code;
}

TEST(ValidateHello, AcceptsWhatASidecarSays) {
    EXPECT_TRUE(validate_hello(good_hello()));
    AgentHello filler = good_hello();
    filler.training_job = "filler/" + std::string(253, 'd') + "/" + std::string(253, 'p');
    EXPECT_TRUE(validate_hello(filler));
}

TEST(ValidateHello, RefusesWhatCannotBe) {
    struct Case {
        const char* name;
        std::function<void(AgentHello&)> spoil;
    };

    const Case cases[] = {
        {"no namespace", [](AgentHello& h) { h.namespace_name.clear(); }},
        {"no pod", [](AgentHello& h) { h.pod.clear(); }},
        {"no node", [](AgentHello& h) { h.node.clear(); }},
        {"no job", [](AgentHello& h) { h.training_job.clear(); }},
        {"a job name longer than a filler's",
         [](AgentHello& h) { h.training_job.assign(kAgentJobBytesMax + 1, 'j'); }},
        {"no job uid", [](AgentHello& h) { h.training_job_uid.clear(); }},
        {"a pod name longer than Kubernetes allows", [](AgentHello& h) { h.pod.assign(254, 'p'); }},
        {"a negative rank", [](AgentHello& h) { h.rank = -1; }},
        {"a rank out of range", [](AgentHello& h) { h.rank = kAgentRankMax + 1; }},
        {"one dataset twice", [](AgentHello& h) { h.datasets.push_back(h.datasets[0]); }},
        {"a dataset without uid", [](AgentHello& h) { h.datasets[0].dataset_uid.clear(); }},
        {"too many datasets",
         [](AgentHello& h) {
             for (std::size_t i = 0; i < kAgentDatasetCountMax; ++i) {
                 h.datasets.push_back({"d" + std::to_string(i), "u"});
             }
         }},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        AgentHello hello = good_hello();
        c.spoil(hello);
        EXPECT_EQ(code_of(validate_hello(hello)), ErrorCode::kInvalidArgument);
    }
}

TEST(ValidateReport, AcceptsRisingTotals) {
    const ReportBody before = good_report(1);
    ReportBody next = good_report(2);
    next.datasets[0].hit_samples = 11;
    EXPECT_TRUE(validate_report(good_hello(), nullptr, before));
    EXPECT_TRUE(validate_report(good_hello(), &before, next));
}

TEST(ValidateReport, CallsAnOlderOrRepeatedReportStale) {
    const ReportBody before = good_report(5);
    EXPECT_EQ(
        code_of(validate_report(good_hello(), &before, good_report(5))), ErrorCode::kAlreadyExists);
    EXPECT_EQ(
        code_of(validate_report(good_hello(), &before, good_report(4))), ErrorCode::kAlreadyExists);
}

TEST(ValidateReport, RefusesWhatCannotBe) {
    struct Case {
        const char* name;
        std::function<void(ReportBody&)> spoil;
    };

    const Case cases[] = {
        {"sequence 0", [](ReportBody& r) { r.sequence = 0; }},
        {"a dataset that the hello did not name", [](ReportBody& r) { r.datasets[0].name = "x"; }},
        {"a uid that the hello did not name",
         [](ReportBody& r) { r.datasets[0].dataset_uid = "d2"; }},
        {"a dataset twice", [](ReportBody& r) { r.datasets.push_back(r.datasets[0]); }},
        {"more samples than there are atoms",
         [](ReportBody& r) { r.datasets[0].samples = kAgentCountMax + 1; }},
        {"resident bytes near 2^64",
         [](ReportBody& r) { r.datasets[0].resident_bytes = Bytes::unlimited(); }},
        {"hits that fell", [](ReportBody& r) { r.datasets[0].hit_samples = 9; }},
        {"trainer samples that fell", [](ReportBody& r) { r.trainer.samples = 9; }},
        {"negative time", [](ReportBody& r) { r.trainer.wait = Duration{-1}; }},
        {"time that fell", [](ReportBody& r) { r.trainer.wait = std::chrono::seconds{2}; }},
        {"requests that took negative time",
         [](ReportBody& r) { r.datasets[0].origin_request_time = Duration{-1}; }},
        {"a measurement of negative time",
         [](ReportBody& r) { r.trainer.probe.cached.time = Duration{-1}; }},
        {"a measurement of more bytes than there are",
         [](ReportBody& r) { r.trainer.probe.bypassed.bytes = Bytes::unlimited(); }},
        {"more epochs than there are atoms",
         [](ReportBody& r) { r.trainer.epochs = kAgentCountMax + 1; }},
        {"a sketch with NaN",
         [](ReportBody& r) { r.datasets[0].sketches[0].masses[1] = std::nanf(""); }},
        {"a sketch with infinity",
         [](ReportBody& r) {
             r.datasets[0].sketches[0].masses[0] = std::numeric_limits<float>::infinity();
         }},
        {"a sketch with a negative mass",
         [](ReportBody& r) { r.datasets[0].sketches[0].masses[0] = -1; }},
        {"a sketch of too many parts",
         [](ReportBody& r) {
             r.datasets[0].sketches[0].masses.assign(kRankSketchSizeMax + 1, 1.0F);
         }},
        {"a sketch of a volume that is no number",
         [](ReportBody& r) { r.datasets[0].sketches[0].volume = std::nan(""); }},
        {"a sketch of an absurd volume",
         [](ReportBody& r) { r.datasets[0].sketches[0].volume = 1e9; }},
        {"a sketch of a negative volume",
         [](ReportBody& r) { r.datasets[0].sketches[0].volume = -1; }},
        {"a sketch without revision",
         [](ReportBody& r) { r.datasets[0].sketches[0].revision = 0; }},
        {"a sketch of nobody", [](ReportBody& r) { r.datasets[0].sketches[0].job_uid.clear(); }},
        {"two sketches of one job",
         [](ReportBody& r) { r.datasets[0].sketches.push_back(r.datasets[0].sketches[0]); }},
        {"sketches of more jobs than a node directory takes",
         [](ReportBody& r) {
             for (std::size_t i = 0; i < kAgentSketchCountMax; ++i) {
                 r.datasets[0].sketches.push_back({"k" + std::to_string(i), 1, {1.0F}, 1});
             }
         }},
        {"a sketch by a follower", [](ReportBody& r) { r.datasets[0].leader = false; }},
        {"an endless revision", [](ReportBody& r) { r.datasets[0].revision.assign(300, '0'); }},
    };
    const ReportBody before = good_report(1);
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        ReportBody next = good_report(2);
        c.spoil(next);
        EXPECT_EQ(
            code_of(validate_report(good_hello(), &before, next)), ErrorCode::kInvalidArgument);
    }
}

TEST(CompleteSketches, TakesOverWhatWasToldWithTheSameRevision) {
    const ReportBody before = good_report(1);
    ReportBody next = good_report(2);
    next.datasets[0].sketches = {{"j1", 4, {}, 1.25}};
    complete_sketches(&before, next);
    EXPECT_EQ(
        next.datasets[0].sketches, (std::vector<RankSketch>{{"j1", 4, {0.75F, 0.25F}, 1.25}}));
}

TEST(CompleteSketches, ForgetsWhatWasNeverTold) {
    const ReportBody before = good_report(1);
    ReportBody next = good_report(2);
    next.datasets[0].sketches = {{"j1", 5, {}, 1}, {"j2", 4, {}, 1}, {"j3", 1, {1.0F}, 1}};
    complete_sketches(&before, next);
    EXPECT_EQ(next.datasets[0].sketches, (std::vector<RankSketch>{{"j3", 1, {1.0F}, 1}}));

    ReportBody first = good_report(1);
    first.datasets[0].sketches = {{"j1", 4, {}, 1}};
    complete_sketches(nullptr, first);
    EXPECT_TRUE(first.datasets[0].sketches.empty());
}

TEST(TrimTexts, CutsAtTheBorderOfACharacter) {
    ReportBody report = good_report(1);
    // "é" has two bytes and would stand across the limit.
    report.datasets[0].error = std::string(kAgentErrorBytesMax - 1, 'x') + "é and more";
    trim_texts(report);
    EXPECT_EQ(report.datasets[0].error, std::string(kAgentErrorBytesMax - 1, 'x'));
}

TEST(ValidateReport, TakesRevisionsThatAreOne) {
    ReportBody report = good_report(1);
    DatasetReport& dataset = report.datasets[0];
    dataset.read_revision = "0123456789abcdef";
    dataset.marks = {1U << 20U, std::vector<std::uint64_t>(domain::kManifestMarksMax, 7)};
    dataset.origin_change = OriginChange{"key", 4096};
    EXPECT_TRUE(validate_report(good_hello(), nullptr, report));
    for (const char* revision : {"0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "x"}) {
        ReportBody spoilt = report;
        spoilt.datasets[0].read_revision = revision;
        EXPECT_EQ(
            code_of(validate_report(good_hello(), nullptr, spoilt)), ErrorCode::kInvalidArgument)
            << revision;
    }
    ReportBody many = report;
    many.datasets[0].marks.digests.push_back(7);
    EXPECT_FALSE(validate_report(good_hello(), nullptr, many));
    ReportBody huge = report;
    huge.datasets[0].marks.samples = std::numeric_limits<std::uint64_t>::max();
    EXPECT_FALSE(validate_report(good_hello(), nullptr, huge));
    huge = report;
    huge.datasets[0].origin_change->keys = std::numeric_limits<std::uint64_t>::max();
    EXPECT_FALSE(validate_report(good_hello(), nullptr, huge));
}

TEST(TrimTexts, CutsKeys) {
    ReportBody report = good_report(1);
    report.datasets[0].changed_key.assign(5000, 'k');
    report.datasets[0].origin_change = OriginChange{std::string(5000, 'k'), 1};
    trim_texts(report);
    EXPECT_EQ(report.datasets[0].changed_key.size(), kAgentKeyBytesMax);
    EXPECT_EQ(report.datasets[0].origin_change->key.size(), kAgentKeyBytesMax);
}

}  // namespace
}  // namespace stoker::control
