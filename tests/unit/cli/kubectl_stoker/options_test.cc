#include "cli/kubectl_stoker/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/kubectl_stoker/cluster.h"
#include "cli/kubectl_stoker/complete.h"

namespace stoker::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string complaint(const std::vector<std::string_view>& words) {
    const auto options = parse_options(words);
    return options ? "" : options.error().message;
}

TEST(Options, AcceptKubectlsFlags) {
    const auto options = parse_options(
        {"why", "-n", "team-a", "tj/resnet", "--context=prod", "-o", "json", "--as", "ann"});
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->command, "why");
    EXPECT_EQ(options->job, "resnet");
    EXPECT_EQ(options->ns, "team-a");
    EXPECT_EQ(options->connect.context, "prod");
    EXPECT_EQ(options->connect.as_user, "ann");
    EXPECT_TRUE(options->json);
    EXPECT_TRUE(parse_options({"top", "-A", "-w"})->all_namespaces);
    EXPECT_TRUE(parse_options({"top", "-A", "-w"})->watch);
    EXPECT_EQ(
        parse_options({"top", "--request-timeout", "500ms"})->connect.request_timeout,
        std::chrono::milliseconds{500});
}

TEST(Options, AcceptsKubectlsJobNames) {
    for (const char* word :
         {"resnet", "tj/resnet", "trainingjob/resnet", "trainingjobs.stoker.dev/resnet"}) {
        EXPECT_EQ(*job_name(word), "resnet") << word;
    }
    EXPECT_EQ(*job_name("tj/team-a/resnet"), "team-a/resnet");
    EXPECT_THAT(job_name("pod/resnet").error().message, HasSubstr("say tj/NAME"));
    EXPECT_FALSE(job_name("tj/"));
}

TEST(Options, WhereTakesADatasetOrAll) {
    EXPECT_EQ(parse_options({"where"})->dataset, "");
    for (const char* word : {"imagenet", "dset/imagenet", "datasets.stoker.dev/imagenet"}) {
        EXPECT_EQ(parse_options({"where", word})->dataset, "imagenet") << word;
    }
    EXPECT_THAT(complaint({"where", "tj/imagenet"}), HasSubstr("say dset/NAME"));
    EXPECT_THAT(complaint({"where", "a", "b"}), HasSubstr("'b' is one word too many"));
}

TEST(Options, WhatIfParsesChanges) {
    const auto options = parse_options(
        {"what-if",
         "--add",
         "200Gi",
         "--pool",
         "nvme",
         "--delete",
         "tj/x",
         "--delete=tj/b/y",
         "--nominal",
         "team-a=2Ti"});
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->add, gib(200));
    EXPECT_EQ(options->pool, "nvme");
    EXPECT_THAT(options->deleted, ElementsAre("x", "b/y"));
    ASSERT_EQ(options->nominal.size(), 1U);
    EXPECT_EQ(options->nominal[0].ns, "team-a");
    EXPECT_EQ(options->nominal[0].nominal, gib(2048));
}

TEST(Options, ErrorsExplainTheFix) {
    EXPECT_THAT(complaint({"tpo"}), HasSubstr("there are: top, why"));
    EXPECT_THAT(complaint({"why"}), HasSubstr("kubectl stoker why tj/NAME"));
    EXPECT_THAT(complaint({"why", "a", "b"}), HasSubstr("'b' is one word too many"));
    EXPECT_THAT(complaint({"what-if"}), HasSubstr("--add BYTES --pool NAME"));
    EXPECT_THAT(complaint({"what-if", "--add", "1Gi"}), HasSubstr("Say --pool NAME"));
    EXPECT_THAT(complaint({"what-if", "--add", "lots", "--pool", "p"}), HasSubstr("--add: "));
    EXPECT_THAT(complaint({"what-if", "--nominal", "2Ti"}), HasSubstr("NAMESPACE=BYTES"));
    EXPECT_THAT(complaint({"top", "--wacth"}), HasSubstr("did you mean --watch?"));
    EXPECT_THAT(complaint({"top", "-o", "yaml"}), HasSubstr("'yaml' is not an output"));
    EXPECT_THAT(complaint({"quota", "--request-timeout", "soon"}), HasSubstr("duration"));
}

TEST(Options, EveryCommandHasHelp) {
    for (const char* command : {"", "top", "why", "what-if", "quota", "where"}) {
        const std::string text = help_text(command);
        EXPECT_THAT(text, HasSubstr("Usage: kubectl stoker")) << command;
        EXPECT_EQ(text.find(" \n"), std::string::npos) << text;
    }
    EXPECT_TRUE(parse_options({})->help);
    EXPECT_TRUE(parse_options({"what-if", "-h"})->help) << "not: what if what?";
}

TEST(Complete, OffersCommandsFlagsAndJobs) {
    const auto jobs = [] { return std::vector<std::string>{"resnet", "bert"}; };
    EXPECT_EQ(complete({"w"}, jobs), "why\nwhat-if\nwhere\n:4\n");
    EXPECT_EQ(complete({"why", ""}, jobs), "tj/resnet\ntj/bert\n:4\n");
    EXPECT_EQ(complete({"why", "tj/b"}, jobs), "tj/bert\n:4\n");
    EXPECT_EQ(complete({"what-if", "--delete", ""}, jobs), "tj/resnet\ntj/bert\n:4\n");
    EXPECT_EQ(complete({"what-if", "--no"}, jobs), "--nominal\n:4\n");
    EXPECT_EQ(complete({"top", "x"}, jobs), ":4\n");
}

TEST(Cluster, LeaderPodIsTheLeaseHolderUpToTheLastUnderscore) {
    EXPECT_EQ(pod_of_holder("stoker-operator-5f_0123456789abcdef"), "stoker-operator-5f");
    EXPECT_EQ(pod_of_holder(""), "");
}

TEST(Options, AdviseTakesATraceOrOneObject) {
    const auto trace = parse_options({"advise", "--trace", "t.txt", "--cache=1Gi", "-o", "json"});
    ASSERT_TRUE(trace) << trace.error().message;
    EXPECT_EQ(trace->advise.trace_path, "t.txt");
    EXPECT_EQ(trace->advise.question.cache, gib(1));
    EXPECT_EQ(parse_options({"advise", "tj/resnet"})->job, "resnet");
    EXPECT_EQ(parse_options({"advise", "pod/resnet-0"})->pod, "resnet-0");
    EXPECT_THAT(complaint({"advise"}), HasSubstr("--trace FILE"));
    EXPECT_THAT(complaint({"advise", "tj/a", "--trace", "t"}), HasSubstr("one of them"));
    EXPECT_THAT(complaint({"advise", "dset/a"}), HasSubstr("say tj/NAME"));
}

TEST(Options, ReportWritesAFile) {
    const auto options = parse_options({"report", "tj/resnet", "-o", "report.html"});
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->job, "resnet");
    EXPECT_EQ(options->report_path, "report.html");
    EXPECT_THAT(complaint({"report"}), HasSubstr("kubectl stoker report tj/NAME"));
    EXPECT_THAT(complaint({"report", "tj/a", "--json"}), HasSubstr("json"));
}

}  // namespace
}  // namespace stoker::cli
