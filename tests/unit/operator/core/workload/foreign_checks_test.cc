#include "operator/core/workload/foreign_checks.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/unit/operator/core/workload/injected_pod.h"

namespace stoker::control {
namespace {

TEST(ForeignSpec, RefusesFilesInAUserNamespace) {
    constexpr const char* kOwnUsers =
        R"([{"op":"add","path":"/spec/hostUsers","value":false},
            {"op":"add","path":"/metadata/annotations/stoker.dev~1access","value":"SDK"}])";
    EXPECT_TRUE(Injected{pod_with(kOwnUsers)}.spec);
    const Injected files{test::patched(
        pod_with(kFiles),
        Json::parse(R"([{"op":"add","path":"/spec/hostUsers","value":false}])").value())};
    ASSERT_FALSE(files.spec);
    EXPECT_EQ(files.spec.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(files.spec.error().message.find("hostUsers"), std::string::npos)
        << files.spec.error().message;
}

TEST(ForeignSpec, RefusesVolumesOfTheUserWithNamesOfStoker) {
    for (const char* patch : {"[]", kFiles}) {
        const Injected injected{with_volume(pod_with(patch), "stoker-data")};
        ASSERT_FALSE(injected.spec);
        EXPECT_NE(injected.spec.error().message.find("volume stoker-data"), std::string::npos)
            << injected.spec.error().message;
    }
}

TEST(IsInjected, TellsThePodsOfAnEarlierCall) {
    EXPECT_FALSE(is_injected(read_pod(pod_with(kFiles))));
    EXPECT_TRUE(is_injected(read_pod(Injected{pod_with(kFiles)}.patched())));
}

}  // namespace
}  // namespace stoker::control
