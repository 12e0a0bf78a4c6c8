#include "sidecar/service/access_proof.h"

#include <gtest/gtest.h>

namespace stoker::sidecar {
namespace {

TEST(AccessProof, AChangedObjectProvesAccessAtTheS3ApiOnly) {
    for (const ErrorCode code : {ErrorCode::kConflict, ErrorCode::kCorruption}) {
        EXPECT_TRUE(proves_access("s3://bucket/a", code));
        EXPECT_FALSE(proves_access("https://host/a", code));
        EXPECT_FALSE(proves_access("http://host/a", code));
    }
    for (const ErrorCode code : {ErrorCode::kForbidden, ErrorCode::kUnavailable}) {
        EXPECT_FALSE(proves_access("s3://bucket/a", code));
    }
}

}  // namespace
}  // namespace stoker::sidecar
