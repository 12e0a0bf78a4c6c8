#include "sidecar/peers/peer_messages.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "sidecar/peers/peer_network.h"
#include "tests/support/test_seed.h"

namespace stoker::sidecar {
namespace {

const std::vector<PeerMessage> kMessages{
    PeerHello{"uid-1", domain::RevisionId{0x1122334455667788U}, "node-1", 17},
    PeerAsk{5, {1, 2, 4'000'000'000U}},
    PeerAnswer{6, 9, 0xDEADBEEFU},
    PeerRefusal{7, 9, PeerRefusalReason::kNotMine},
    PeerAsk{5, {7}, true},
    PeerManifestAsk{0xABCDEF01U, domain::RevisionId{3}, 1U << 20U, PeerManifestAsk::kBytesMax},
    PeerManifestPiece{domain::RevisionId{3}, 1U << 20U, 1U << 30U, "job-1"},
    PeerManifestAsk{1, {}, 0, 0, true},
    PeerManifestPiece{
        domain::RevisionId{3}, 0, 9, "job-1", PeerListing{"uid-a1", std::chrono::seconds{3600}}},
    PeerManifestPiece{domain::RevisionId{3}, 0, 9, "", PeerListing{"uid-a1", std::nullopt}},
    PeerManifestWait{PeerManifestWait::State::kListing, 4000},
    PeerLosses{"job-1/main", 3, {{{1, 4'000'000'000U}, {0, 255}}, {{7}, {128}}}},
};

TEST(PeerMessages, EachRoundTrips) {
    for (const PeerMessage& message : kMessages) {
        const auto decoded = decode_peer_head(encode_peer_head(message));
        ASSERT_TRUE(decoded.has_value()) << message.index() << ": " << decoded.error().message;
        EXPECT_EQ(*decoded, message) << message.index();
    }
}

TEST(PeerMessages, AShorterOrLongerHeadIsRefused) {
    for (const PeerMessage& message : kMessages) {
        const auto head = encode_peer_head(message);
        for (std::size_t size = 0; size < head.size(); ++size) {
            const bool is_shorter_ask =
                std::holds_alternative<PeerAsk>(message) && size >= 13 && (size - 9) % 4 == 0;
            const bool is_first_report =
                std::holds_alternative<PeerLosses>(message) && size == head.size() - 7;
            const auto* piece = std::get_if<PeerManifestPiece>(&message);
            const bool is_without_listing =
                piece != nullptr && piece->listing && size == head.size() - sizeof("uid-a1") - 4;
            EXPECT_EQ(
                decode_peer_head(std::span{head}.first(size)).has_value(),
                is_shorter_ask || is_first_report || is_without_listing)
                << message.index() << " of " << size;
        }
        auto longer = head;
        longer.push_back(std::byte{0});
        EXPECT_FALSE(decode_peer_head(longer).has_value()) << message.index();
    }
}

TEST(PeerMessages, AnAgeIsRoundedUpToSecondsAndAnAbsurdOneIsNotKnown) {
    const auto arrives = [](Duration age) {
        const PeerManifestPiece piece{domain::RevisionId{3}, 0, 9, "", PeerListing{"a", age}};
        const auto decoded = decode_peer_head(encode_peer_head(piece)).value();
        return std::get<PeerManifestPiece>(decoded).listing->age;
    };
    EXPECT_EQ(arrives(Duration{1}), std::chrono::seconds{1});
    EXPECT_EQ(arrives(Duration{}), Duration{});
    EXPECT_EQ(arrives(std::chrono::hours{24 * 365 * 200}), std::nullopt);
}

TEST(PeerMessages, AnAskForTooMuchOfAManifestIsRefused) {
    PeerManifestAsk ask{1, {}, 0, PeerManifestAsk::kBytesMax + 1};
    EXPECT_FALSE(decode_peer_head(encode_peer_head(ask)).has_value());
    ask.wants_age = true;
    EXPECT_FALSE(decode_peer_head(encode_peer_head(ask)).has_value());
}

TEST(PeerMessages, TheLargestAskFitsIntoAFrameHead) {
    const PeerAsk largest{1, std::vector<domain::SampleIndex>(PeerAsk::kSamplesMax)};
    const auto head = encode_peer_head(largest);
    EXPECT_LE(head.size(), PeerFrame::kHeadMax);
    EXPECT_TRUE(decode_peer_head(head).has_value());
    const PeerAsk larger{1, std::vector<domain::SampleIndex>(PeerAsk::kSamplesMax + 1)};
    EXPECT_FALSE(decode_peer_head(encode_peer_head(larger)).has_value());
    EXPECT_FALSE(decode_peer_head(encode_peer_head(PeerAsk{1, {}})).has_value());
}

PeerLosses losses_of(std::vector<std::size_t> counts) {
    PeerLosses losses{std::string(PeerHello::kTextMax, 'j'), 1, {}};
    for (const std::size_t count : counts) {
        losses.reports.push_back(
            {std::vector<domain::SampleIndex>(count), std::vector<std::uint8_t>(count)});
    }
    return losses;
}

TEST(PeerMessages, TheLargestLossesFitIntoAFrameHead) {
    std::vector<std::size_t> single(PeerLosses::kEntriesMax, 1);
    for (const auto& counts : {std::vector{PeerLosses::kEntriesMax}, single}) {
        const auto head = encode_peer_head(losses_of(counts));
        EXPECT_LE(head.size(), PeerFrame::kHeadMax);
        EXPECT_TRUE(decode_peer_head(head).has_value());
    }
    single.push_back(1);
    EXPECT_FALSE(decode_peer_head(encode_peer_head(losses_of(single))).has_value());
    EXPECT_FALSE(
        decode_peer_head(encode_peer_head(losses_of({PeerLosses::kEntriesMax + 1}))).has_value());
    EXPECT_FALSE(decode_peer_head(encode_peer_head(losses_of({}))).has_value());
    EXPECT_FALSE(decode_peer_head(encode_peer_head(losses_of({3, 0}))).has_value());
}

TEST(PeerMessages, UnknownVersionsTypesAndReasonsAreRefused) {
    auto hello = encode_peer_head(kMessages[0]);
    hello[1] = std::byte{9};
    EXPECT_FALSE(decode_peer_head(hello).has_value());
    hello[0] = std::byte{200};
    EXPECT_FALSE(decode_peer_head(hello).has_value());
    EXPECT_FALSE(decode_peer_head(
                     encode_peer_head(PeerManifestAsk{1, {}, 0, PeerManifestAsk::kBytesMax + 1}))
                     .has_value());
    for (const auto state : {std::byte{0}, std::byte{5}}) {
        auto wait = encode_peer_head(kMessages.back());
        wait[1] = state;
        EXPECT_FALSE(decode_peer_head(wait).has_value());
    }
    auto refusal = encode_peer_head(kMessages[3]);
    for (const auto reason : {std::byte{0}, std::byte{6}, std::byte{255}}) {
        refusal.back() = reason;
        EXPECT_FALSE(decode_peer_head(refusal).has_value());
    }
}

TEST(PeerMessages, RandomBytesNeverCrash) {
    Prng prng{test::seed()};
    for (int i = 0; i < 100'000; ++i) {
        std::vector<std::byte> head(prng.below(64));
        for (auto& byte : head) {
            byte = static_cast<std::byte>(prng.below(256));
        }
        if (!head.empty()) {
            head[0] = static_cast<std::byte>(1 + prng.below(5));
        }
        if (const auto message = decode_peer_head(head)) {
            EXPECT_EQ(encode_peer_head(*message), head) << "a head has one encoding";
        }
    }
}

}  // namespace
}  // namespace stoker::sidecar
