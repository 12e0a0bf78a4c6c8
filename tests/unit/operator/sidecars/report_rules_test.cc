#include "operator/sidecars/report_rules.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "proto/control/v1/control.pb.h"
#include "wire/control/codec/control_codec.h"

namespace stoker::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Hello good_hello() {
    Hello hello;
    hello.namespace_name = "ml";
    hello.pod = "mnist-a1-0-x";
    hello.node = "node-1";
    hello.training_job = "mnist";
    hello.training_job_uid = "j1";
    hello.version = "0.1.0";
    hello.mounts = {{"train", "d1"}};
    return hello;
}

Report good_report(std::uint64_t sequence) {
    Report report;
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

TEST(ValidateHello, AcceptsAValidHello) {
    EXPECT_TRUE(validate_hello(good_hello()));
    Hello filler = good_hello();
    filler.training_job = "filler/" + std::string(122, 'd') + "/" + std::string(122, 'p');
    EXPECT_TRUE(validate_hello(filler));
}

TEST(ValidateHello, RejectsImpossibleHellos) {
    struct Case {
        const char* name;
        std::function<void(Hello&)> spoil;
    };

    const Case cases[] = {
        {"no namespace", [](Hello& h) { h.namespace_name.clear(); }},
        {"no pod", [](Hello& h) { h.pod.clear(); }},
        {"no node", [](Hello& h) { h.node.clear(); }},
        {"no job", [](Hello& h) { h.training_job.clear(); }},
        {"a job name longer than Kubernetes allows",
         [](Hello& h) { h.training_job.assign(254, 'j'); }},
        {"no job uid", [](Hello& h) { h.training_job_uid.clear(); }},
        {"a pod name longer than Kubernetes allows", [](Hello& h) { h.pod.assign(254, 'p'); }},
        {"a negative rank", [](Hello& h) { h.rank = -1; }},
        {"a rank out of range", [](Hello& h) { h.rank = kSidecarRankMax + 1; }},
        {"one dataset twice", [](Hello& h) { h.mounts.push_back(h.mounts[0]); }},
        {"a dataset without uid", [](Hello& h) { h.mounts[0].dataset_uid.clear(); }},
        {"too many datasets",
         [](Hello& h) {
             for (std::size_t i = 0; i < kSidecarDatasetCountMax; ++i) {
                 h.mounts.push_back({"d" + std::to_string(i), "u"});
             }
         }},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Hello hello = good_hello();
        c.spoil(hello);
        EXPECT_EQ(code_of(validate_hello(hello)), ErrorCode::kInvalidArgument);
    }
}

TEST(ValidateReport, AcceptsRisingTotals) {
    const Report before = good_report(1);
    Report next = good_report(2);
    next.datasets[0].hit_samples = 11;
    EXPECT_TRUE(validate_report(good_hello(), nullptr, before));
    EXPECT_TRUE(validate_report(good_hello(), &before, next));
}

TEST(ValidateReport, OlderOrRepeatedReportIsStale) {
    const Report before = good_report(5);
    EXPECT_EQ(
        code_of(validate_report(good_hello(), &before, good_report(5))), ErrorCode::kAlreadyExists);
    EXPECT_EQ(
        code_of(validate_report(good_hello(), &before, good_report(4))), ErrorCode::kAlreadyExists);
}

TEST(ValidateReport, RejectsImpossibleReports) {
    struct Case {
        const char* name;
        std::function<void(Report&)> spoil;
    };

    const Case cases[] = {
        {"sequence 0", [](Report& r) { r.sequence = 0; }},
        {"a dataset that the hello did not name", [](Report& r) { r.datasets[0].name = "x"; }},
        {"a uid that the hello did not name", [](Report& r) { r.datasets[0].dataset_uid = "d2"; }},
        {"a dataset twice", [](Report& r) { r.datasets.push_back(r.datasets[0]); }},
        {"more samples than there are atoms",
         [](Report& r) { r.datasets[0].samples = kSidecarCountMax + 1; }},
        {"resident bytes near 2^64",
         [](Report& r) { r.datasets[0].resident_bytes = Bytes::unlimited(); }},
        {"hits that fell", [](Report& r) { r.datasets[0].hit_samples = 9; }},
        {"trainer samples that fell", [](Report& r) { r.trainer.samples = 9; }},
        {"negative time", [](Report& r) { r.trainer.wait = Duration{-1}; }},
        {"time that fell", [](Report& r) { r.trainer.wait = std::chrono::seconds{2}; }},
        {"requests that took negative time",
         [](Report& r) { r.datasets[0].origin_request_time = Duration{-1}; }},
        {"a measurement of negative time",
         [](Report& r) { r.trainer.probe.cached.time = Duration{-1}; }},
        {"a measurement of more bytes than there are",
         [](Report& r) { r.trainer.probe.bypassed.bytes = Bytes::unlimited(); }},
        {"a sketch with NaN",
         [](Report& r) { r.datasets[0].sketches[0].masses[1] = std::nanf(""); }},
        {"a sketch with infinity",
         [](Report& r) {
             r.datasets[0].sketches[0].masses[0] = std::numeric_limits<float>::infinity();
         }},
        {"a sketch with a negative mass",
         [](Report& r) { r.datasets[0].sketches[0].masses[0] = -1; }},
        {"a sketch of too many parts",
         [](Report& r) { r.datasets[0].sketches[0].masses.assign(kRankSketchSizeMax + 1, 1.0F); }},
        {"a sketch of a volume that is no number",
         [](Report& r) { r.datasets[0].sketches[0].volume = std::nan(""); }},
        {"a sketch of an absurd volume", [](Report& r) { r.datasets[0].sketches[0].volume = 1e9; }},
        {"a sketch of a negative volume", [](Report& r) { r.datasets[0].sketches[0].volume = -1; }},
        {"a sketch without revision", [](Report& r) { r.datasets[0].sketches[0].revision = 0; }},
        {"a sketch of nobody", [](Report& r) { r.datasets[0].sketches[0].job_uid.clear(); }},
        {"two sketches of one job",
         [](Report& r) { r.datasets[0].sketches.push_back(r.datasets[0].sketches[0]); }},
        {"sketches of more jobs than a node directory takes",
         [](Report& r) {
             for (std::size_t i = 0; i < kSidecarSketchCountMax; ++i) {
                 r.datasets[0].sketches.push_back({"k" + std::to_string(i), 1, {1.0F}, 1});
             }
         }},
        {"a sketch by a follower", [](Report& r) { r.datasets[0].leader = false; }},
        {"an endless revision", [](Report& r) { r.datasets[0].revision.assign(300, '0'); }},
    };
    const Report before = good_report(1);
    for (const Case& c : cases) {
        SCOPED_TRACE(c.name);
        Report next = good_report(2);
        c.spoil(next);
        EXPECT_EQ(
            code_of(validate_report(good_hello(), &before, next)), ErrorCode::kInvalidArgument);
    }
}

// Finds a message inside a report; tests change its numbers.
using Part = std::function<google::protobuf::Message*(v1::Report&)>;

v1::DatasetReport* dataset_of(v1::Report& report) {
    return report.mutable_datasets(0);
}

// good_report(sequence) with number `field` of the message `part` set to `value`.
Report with_number(std::uint64_t sequence, const Part& part, int field, std::uint64_t value) {
    v1::SidecarMessage message = encode(good_report(sequence));
    google::protobuf::Message* changed = part(*message.mutable_report());
    changed->GetReflection()->SetUInt64(changed, changed->GetDescriptor()->field(field), value);
    return decode(message.report());
}

// Field indices of the numbers of the message `part`.
std::vector<int> numbers_of(const Part& part) {
    v1::SidecarMessage message = encode(good_report(1));
    const auto* descriptor = part(*message.mutable_report())->GetDescriptor();
    std::vector<int> numbers;
    for (int i = 0; i < descriptor->field_count(); ++i) {
        const auto& field = *descriptor->field(i);
        const bool is_number =
            field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT64;
        if (is_number && !field.is_repeated() && field.name() != "id") {
            numbers.push_back(i);
        }
    }
    return numbers;
}

TEST(ValidateReport, RejectsEveryNumberOutOfRange) {
    const Part parts[] = {
        dataset_of,
        [](v1::Report& r) { return dataset_of(r)->mutable_disk_limit(); },
        [](v1::Report& r) { return dataset_of(r)->mutable_marks(); },
        [](v1::Report& r) { return dataset_of(r)->mutable_origin_change(); },
        [](v1::Report& r) { return r.mutable_job(); },
        [](v1::Report& r) { return r.mutable_job()->mutable_probe(); },
    };
    for (const Part& part : parts) {
        for (const int field : numbers_of(part)) {
            const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max() - 1;
            EXPECT_EQ(
                code_of(validate_report(good_hello(), nullptr, with_number(1, part, field, huge))),
                ErrorCode::kInvalidArgument)
                << field;
        }
    }
}

// Names of the numbers that may not decrease.
std::vector<std::string> totals_of(const Part& part) {
    std::vector<std::string> totals;
    for (const int field : numbers_of(part)) {
        const Report before = with_number(1, part, field, 1000);
        if (!validate_report(good_hello(), &before, with_number(2, part, field, 999))) {
            v1::Report any;
            any.add_datasets();
            totals.push_back(part(any)->GetDescriptor()->field(field)->name());
        }
    }
    return totals;
}

TEST(ValidateReport, RejectsDecreasingTotals) {
    EXPECT_THAT(
        totals_of(dataset_of),
        ElementsAre(
            "cache_bytes_read",
            "origin_bytes_read",
            "origin_requests",
            "hit_samples",
            "miss_samples",
            "corrupt_samples",
            "miss_bytes_read",
            "peer_bytes_read",
            "peer_samples",
            "peer_hedges",
            "peer_failures",
            "peer_connect_failures"));
    EXPECT_THAT(
        totals_of([](v1::Report& r) { return r.mutable_job(); }),
        ElementsAre("samples", "bytes", "steps", "wait_ns", "compute_ns", "fallback_samples"));
    EXPECT_THAT(
        totals_of([](v1::Report& r) { return r.mutable_job()->mutable_probe(); }), IsEmpty())
        << "each measurement begins at zero";
}

TEST(CompleteSketches, CopiesMassesOfTheSameRevision) {
    const Report before = good_report(1);
    Report next = good_report(2);
    next.datasets[0].sketches = {{"j1", 4, {}, 1.25}};
    complete_sketches(&before, next);
    EXPECT_EQ(
        next.datasets[0].sketches, (std::vector<RankSketch>{{"j1", 4, {0.75F, 0.25F}, 1.25}}));
}

TEST(CompleteSketches, DropsASketchWithoutMassesIfTheEarlierReportLacksThem) {
    const Report before = good_report(1);
    Report next = good_report(2);
    next.datasets[0].sketches = {{"j1", 5, {}, 1}, {"j2", 4, {}, 1}, {"j3", 1, {1.0F}, 1}};
    complete_sketches(&before, next);
    EXPECT_EQ(next.datasets[0].sketches, (std::vector<RankSketch>{{"j3", 1, {1.0F}, 1}}));

    Report first = good_report(1);
    first.datasets[0].sketches = {{"j1", 4, {}, 1}};
    complete_sketches(nullptr, first);
    EXPECT_TRUE(first.datasets[0].sketches.empty());
}

TEST(TrimTexts, CutsBetweenCharacters) {
    Report report = good_report(1);
    // "é" has two bytes and would cross the limit.
    report.datasets[0].error = std::string(kMessageBytesMax - 1, 'x') + "é and more";
    trim_texts(report);
    EXPECT_EQ(report.datasets[0].error, std::string(kMessageBytesMax - 1, 'x'));
}

TEST(ValidateReport, RejectsMalformedRevisionsAndManifestMarks) {
    Report report = good_report(1);
    DatasetReport& dataset = report.datasets[0];
    dataset.read_revision = "0123456789abcdef";
    dataset.marks = {1U << 20U, std::vector<std::uint64_t>(domain::kManifestMarksMax, 7)};
    dataset.origin_change = OriginChange{"key", 4096};
    EXPECT_TRUE(validate_report(good_hello(), nullptr, report));
    for (const char* revision : {"0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "x"}) {
        Report spoilt = report;
        spoilt.datasets[0].read_revision = revision;
        EXPECT_EQ(
            code_of(validate_report(good_hello(), nullptr, spoilt)), ErrorCode::kInvalidArgument)
            << revision;
    }
    Report many = report;
    many.datasets[0].marks.digests.push_back(7);
    EXPECT_FALSE(validate_report(good_hello(), nullptr, many));
    Report huge = report;
    huge.datasets[0].marks.samples = std::numeric_limits<std::uint64_t>::max();
    EXPECT_FALSE(validate_report(good_hello(), nullptr, huge));
    huge = report;
    huge.datasets[0].origin_change->keys = std::numeric_limits<std::uint64_t>::max();
    EXPECT_FALSE(validate_report(good_hello(), nullptr, huge));
}

TEST(TrimTexts, CutsKeys) {
    Report report = good_report(1);
    report.datasets[0].changed_key.assign(5000, 'k');
    report.datasets[0].origin_change = OriginChange{std::string(5000, 'k'), 1};
    trim_texts(report);
    EXPECT_EQ(report.datasets[0].changed_key.size(), kMessageBytesMax);
    EXPECT_EQ(report.datasets[0].origin_change->key.size(), kMessageBytesMax);
}

TEST(ValidateReport, ChecksPeerAddressAndGeneration) {
    const auto is_valid = [](const std::string& address, std::uint64_t generation) {
        Report report = good_report(1);
        report.datasets[0].peer_address = address;
        report.datasets[0].peer_generation = generation;
        return validate_report(good_hello(), nullptr, report).has_value();
    };
    EXPECT_TRUE(is_valid("", 0));
    EXPECT_TRUE(is_valid("10.0.0.1:7331", 1));
    EXPECT_TRUE(is_valid("[fd00::1]:7331", 1));
    EXPECT_FALSE(is_valid("10.0.0.1:7331", 0));
    const std::string longest = std::string(250, 'h') + ":7331";
    EXPECT_TRUE(is_valid(longest, 1));
    EXPECT_FALSE(is_valid("h" + longest, 1));
    for (const char* address :
         {"10.0.0.1", ":7331", "10.0.0.1:0", "10.0.0.1:99999", "a b:1", "x"}) {
        EXPECT_FALSE(is_valid(address, 1)) << address;
    }
}

TEST(ValidateReport, PeerTotalsNeverFall) {
    const auto field = [](auto member) {
        Report before = good_report(1);
        auto& total = before.datasets[0].*member;
        total = std::remove_reference_t<decltype(total)>{7};
        const Report after = good_report(2);
        return validate_report(good_hello(), &before, after).has_value();
    };
    EXPECT_FALSE(field(&DatasetReport::peer_bytes_read));
    EXPECT_FALSE(field(&DatasetReport::peer_samples));
    EXPECT_FALSE(field(&DatasetReport::peer_hedges));
    EXPECT_FALSE(field(&DatasetReport::peer_failures));
    EXPECT_FALSE(field(&DatasetReport::peer_connect_failures));
}

Report report_with_dataset() {
    Report report;
    report.sequence = 1;
    report.datasets.emplace_back();
    report.datasets.back().name = "train";
    report.datasets.back().dataset_uid = "d1";
    return report;
}

TEST(IsNews, IsFalseIfOnlyNumbersGrow) {
    const Report before = report_with_dataset();
    Report next = before;
    next.sequence = 2;
    next.datasets[0].cache_bytes_read = mib(1);
    next.datasets[0].resident_bytes = mib(1);
    next.datasets[0].objects_listed = 7;
    EXPECT_FALSE(is_news(&before, next));
}

TEST(IsNews, IsTrueForTheFirstReportAndEveryChangeOfState) {
    const Report before = report_with_dataset();
    EXPECT_TRUE(is_news(nullptr, before));
    EXPECT_TRUE(is_news(&before, Report{}));
    const auto changed = [&](auto change) {
        Report next = before;
        change(next.datasets[0]);
        return is_news(&before, next);
    };
    EXPECT_TRUE(changed([](DatasetReport& it) { it.leader = true; }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.manifest_state = ManifestState::kReady; }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.error = "no such bucket"; }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.read_revision = "0123456789abcdef"; }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.admitting = false; }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.origin_change.emplace(); }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.corrupt_samples = 1; }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.peer_generation = 3; }));
    EXPECT_TRUE(changed([](DatasetReport& it) { it.reads_differ = true; }));
}

}  // namespace
}  // namespace stoker::control
