#include "common/base/shared_value.h"

#include <string>

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(SharedValue, CopiesShareOneObject) {
    const SharedValue<std::string> first = std::string("text");
    const SharedValue<std::string> second = first;
    EXPECT_EQ(&*first, &*second);
    EXPECT_EQ(second->size(), 4U);
}

TEST(SharedValue, EditLeavesCopiesAlone) {
    SharedValue<std::string> first = std::string("text");
    const SharedValue<std::string> second = first;
    first.edit() = "other";
    EXPECT_EQ(*first, "other");
    EXPECT_EQ(*second, "text");
}

TEST(SharedValue, KeepsTheOwnerOfAPartAlive) {
    auto pair = std::make_shared<std::pair<int, std::string>>(1, "text");
    const SharedValue<std::string> part(std::shared_ptr<const std::string>(pair, &pair->second));
    const std::weak_ptr<std::pair<int, std::string>> owner = pair;
    pair.reset();
    EXPECT_FALSE(owner.expired());
    EXPECT_EQ(*part, "text");
}

}  // namespace
}  // namespace stoker
