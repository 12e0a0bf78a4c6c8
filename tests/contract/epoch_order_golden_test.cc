// The C++ implementation of an epoch's order matches tests/contract/golden/order.json;
// client/tests/test_order.py and test_torch_order.py check the same vectors in Python.
#include <fstream>

#include <cpprest/json.h>
#include <gtest/gtest.h>

#include "sidecar/core/sampling/epoch_permutation.h"
#include "sidecar/core/sampling/exact_order.h"

namespace stoker::sidecar {
namespace {

std::uint64_t number(const web::json::value& arguments, const char* name, std::uint64_t otherwise) {
    return arguments.has_field(name) ? arguments.at(name).as_number().to_uint64() : otherwise;
}

bool flag(const web::json::value& arguments, const char* name, bool otherwise) {
    return arguments.has_field(name) ? arguments.at(name).as_bool() : otherwise;
}

std::vector<SampleIndex> ids_of(const web::json::value& vector) {
    std::vector<SampleIndex> ids;
    for (const auto& id : vector.at("ids").as_array()) {
        ids.push_back(id.as_number().to_uint32());
    }
    return ids;
}

void expect_orders(const char* vectors_name, Shuffler shuffler) {
    std::ifstream file{STOKER_GOLDEN_DIR "/order.json"};
    const auto document = web::json::value::parse(file);
    const auto& vectors = document.at(vectors_name).as_array();
    EXPECT_GE(vectors.size(), 6U);
    for (const auto& vector : vectors) {
        const auto& arguments = vector.at("arguments");
        SCOPED_TRACE(arguments.serialize());
        const EpochShape shape{
            .count = static_cast<std::uint32_t>(number(arguments, "count", 0)),
            .seed = number(arguments, "seed", 0),
            .ranks = static_cast<std::uint32_t>(number(arguments, "world_size", 1)),
            .tail = flag(arguments, "drop_last", false) ? Tail::kDrop : Tail::kPad,
            .shuffle = flag(arguments, "shuffle", true),
            .shuffler = shuffler};
        const auto order = epoch_order(
            shape,
            number(arguments, "epoch", 0),
            static_cast<std::uint32_t>(number(arguments, "rank", 0)));
        EXPECT_EQ(order, ids_of(vector));
    }
}

TEST(EpochOrder, MatchesThePythonClients) {
    expect_orders("vectors", Shuffler::kStoker);
}

TEST(EpochOrder, MatchesTorchsDistributedSampler) {
    expect_orders("torch", Shuffler::kTorch);
}

TEST(EpochPermutation, GivesThePythonClientsOrder) {
    std::ifstream file{STOKER_GOLDEN_DIR "/order.json"};
    const auto document = web::json::value::parse(file);
    const auto& vectors = document.at("walks").as_array();
    EXPECT_GE(vectors.size(), 6U);
    for (const auto& vector : vectors) {
        const auto& arguments = vector.at("arguments");
        SCOPED_TRACE(arguments.serialize());
        const auto count = static_cast<std::uint32_t>(number(arguments, "count", 0));
        const EpochPermutation order{
            count, number(arguments, "seed", 0), number(arguments, "epoch", 0)};
        const auto want = ids_of(vector);
        std::uint64_t place = number(arguments, "rank", 0);
        for (const SampleIndex sample : want) {
            EXPECT_EQ(order.at(static_cast<std::uint32_t>(place % count)), sample);
            place += number(arguments, "world_size", 1);
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
