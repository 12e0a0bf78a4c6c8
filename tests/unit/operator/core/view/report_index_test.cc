#include "operator/core/view/report_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::control {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SidecarReport report_of(const std::string& job_uid, const std::string& node) {
    SidecarReport report;
    report.training_job_uid = job_uid;
    report.node = node;
    return report;
}

TEST(ReportIndex, FindsReportsByJobAndByNodeInTheirOrder) {
    const std::vector<SidecarReport> reports = {
        report_of("a", "n1"), report_of("b", "n1"), report_of("a", "n2")};
    const ReportIndex index{reports};
    EXPECT_THAT(index.of_job("a"), ElementsAre(&reports[0], &reports[2]));
    EXPECT_THAT(index.on_node("n1"), ElementsAre(&reports[0], &reports[1]));
    EXPECT_THAT(index.of_job("c"), IsEmpty());
    EXPECT_THAT(index.on_node("n3"), IsEmpty());
}

}  // namespace
}  // namespace stoker::control
