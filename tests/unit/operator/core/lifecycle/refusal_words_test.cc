#include "operator/core/lifecycle/refusal_words.h"

#include <gtest/gtest.h>

namespace stoker::control {
namespace {

TEST(RefusalWords, NamesUnknownFieldsByTheirTrainingJobPath) {
    EXPECT_EQ(
        refusal_words("creating jobs ml/a-a1: Job in version \"v1\" cannot be handled as a Job: "
                      "strict decoding error: unknown field \"spec.template.spec.affinity.nodeX\", "
                      "unknown field \"spec.template.spec.containers[0].ports[0].portt\""),
        "spec.podTemplate.spec.affinity.nodeX: unknown field; "
        "spec.podTemplate.spec.containers[0].ports[0].portt: unknown field");
}

TEST(RefusalWords, QuotesOtherMessagesUpToALimit) {
    EXPECT_EQ(refusal_words("quota exceeded"), "The API server refuses it: quota exceeded");
    EXPECT_EQ(refusal_words("unknown field \""), ": unknown field");
    EXPECT_LE(refusal_words(std::string(5000, 'x')).size(), 1100U);
}

}  // namespace
}  // namespace stoker::control
