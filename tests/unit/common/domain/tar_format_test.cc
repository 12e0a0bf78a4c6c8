#include "common/domain/tar_format.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/tar_text.h"
#include "tests/support/test_seed.h"

namespace stoker::domain {
namespace {

using Kind = TarMember::Kind;
using test::pax_record;
using test::tar_end;
using test::tar_header;
using test::tar_member;
using test::tar_signed;
using testing::HasSubstr;

Result<std::vector<TarMember>> members_of(const std::string& tar) {
    const auto bytes = std::as_bytes(std::span{tar});
    std::vector<TarMember> members;
    TarWalk walk{tar.size()};
    while (const auto wanted = walk.next()) {
        STOKER_TRY(const auto member, walk.take(bytes.subspan(wanted->offset, wanted->length)));
        if (member) {
            members.push_back(*member);
        }
    }
    return members;
}

TarMember only_member(const std::string& tar) {
    const auto members = members_of(tar);
    EXPECT_TRUE(members.has_value()) << members.error().message;
    EXPECT_EQ(members->size(), 1U);
    return members->at(0);
}

std::string error_of(const std::string& tar) {
    const auto members = members_of(tar);
    return members ? "" : members.error().message;
}

TEST(TarFormat, MembersHaveTheirPlaces) {
    const auto members = members_of(
        tar_member("a.txt", std::string(513, 'a')) + tar_member("d/", "", '5') +
        tar_member("d/b.txt", "b") + tar_end());
    ASSERT_TRUE(members.has_value()) << members.error().message;
    ASSERT_EQ(members->size(), 3U);
    EXPECT_EQ((*members)[0].name, "a.txt");
    EXPECT_EQ((*members)[0].begin, 0U);
    EXPECT_EQ((*members)[0].data, 512U);
    EXPECT_EQ((*members)[0].end(), 512U + 513U);
    EXPECT_EQ((*members)[1].kind, Kind::kOther);
    EXPECT_EQ((*members)[2].name, "d/b.txt");
    EXPECT_EQ((*members)[2].begin, 2048U);
    EXPECT_EQ((*members)[2].data, 2560U);
}

TEST(TarFormat, AMemberBeginsAtTheHeadersOfItsLongName) {
    const std::string name(300, 'n');
    for (const std::string& before :
         {tar_member("././@LongLink", name + '\0', 'L'),
          tar_member("././@LongLink", "target", 'K') + tar_member("././@LongLink", name, 'L'),
          tar_member("x", pax_record("mtime", "1.5") + pax_record("path", name), 'x')}) {
        const TarMember member = only_member(
            tar_member("g", pax_record("comment", "c"), 'g') + before + tar_member("n", "1"));
        EXPECT_EQ(member.name, name);
        EXPECT_EQ(member.begin, 1024U);
        EXPECT_EQ(member.data, 1024U + before.size() + 512U);
        EXPECT_EQ(member.kind, Kind::kFile);
    }
}

TEST(TarFormat, EmptyExtraHeadersChangeNothing) {
    const TarMember member =
        only_member(tar_header("g", 0, 'g') + tar_header("x", 0, 'x') + tar_member("a", "1"));
    EXPECT_EQ(member.name, "a");
    EXPECT_EQ(member.begin, 512U);
}

TEST(TarFormat, PrefixOfUstarIsAFolder) {
    std::string header = tar_header("b", 0);
    header.replace(345, 6, "folder");
    EXPECT_EQ(only_member(tar_signed(header)).name, "folder/b");
    header.replace(257, 8, std::string{"ustar  \0", 8});
    EXPECT_EQ(only_member(tar_signed(header)).name, "b") << "GNU has other fields there";
}

TEST(TarFormat, SizesAreOctalBinaryOrInPax) {
    const std::string data(700, 'd');
    std::string binary = tar_header("a", 0);
    binary.replace(124, 12, std::string{"\x80\0\0\0\0\0\0\0\0\0\x02\xbc", 12});
    std::string blank = tar_header("a", 0);
    blank.replace(124, 12, 12, ' ');
    EXPECT_EQ(only_member(tar_signed(binary) + test::tar_padded(data)).size_bytes, 700U);
    EXPECT_EQ(only_member(tar_signed(blank)).size_bytes, 0U);
    const std::string pax = tar_member("x", pax_record("size", "700"), 'x');
    EXPECT_EQ(only_member(pax + tar_header("a", 0) + test::tar_padded(data)).size_bytes, 700U);
    binary.replace(124, 12, std::string{"\x80\x01\0\0\0\0\0\0\0\0\x02\xbc", 12});
    EXPECT_THAT(error_of(tar_signed(binary)), HasSubstr("not a tar header")) << "more than 64 bits";
    binary.replace(124, 12, 12, '\xff');
    EXPECT_THAT(error_of(tar_signed(binary)), HasSubstr("not a tar header")) << "negative";
}

TEST(TarFormat, LinksAndFoldersHaveNoData) {
    for (const char type : {'1', '2', '3', '4', '5', '6'}) {
        const auto members = members_of(tar_header("l", 5, type) + tar_member("a", "1"));
        ASSERT_TRUE(members.has_value()) << type << members.error().message;
        EXPECT_EQ(members->size(), 2U);
        EXPECT_EQ((*members)[0].kind, type <= '2' ? Kind::kLink : Kind::kOther);
    }
    EXPECT_EQ(only_member(tar_header("old/", 0, '\0')).kind, Kind::kOther);
}

TEST(TarFormat, SparseFilesAreToldApart) {
    EXPECT_EQ(only_member(tar_member("s", "x", 'S')).kind, Kind::kSparse);
    const std::string pax = tar_member("x", pax_record("GNU.sparse.major", "1"), 'x');
    const auto members = members_of(pax + tar_member("s", "x") + tar_member("t", "x"));
    EXPECT_EQ(members->at(0).kind, Kind::kSparse);
    EXPECT_EQ(members->at(1).kind, Kind::kFile);
}

TEST(TarFormat, EndsWithZerosOrTheFile) {
    const std::string whole = tar_member("a", "1");
    EXPECT_EQ(only_member(whole + std::string(512, '\0') + "garbage").name, "a");
    EXPECT_EQ(only_member(whole).name, "a");
    EXPECT_EQ(only_member(whole.substr(0, 513)).name, "a") << "without its padding";
    EXPECT_TRUE(members_of("")->empty());
    EXPECT_TRUE(members_of(tar_end())->empty());
}

TEST(TarFormat, CutFilesAreCorrupt) {
    const std::string whole = tar_member("L", "a", 'L') + tar_member("a", std::string(600, 'a'));
    for (const std::size_t length : {1U, 511U, 512U, 1023U, 1024U, 1400U, 1536U, 2135U}) {
        EXPECT_THAT(error_of(whole.substr(0, length)), HasSubstr("ends inside an entry")) << length;
    }
    EXPECT_EQ(error_of(whole.substr(0, 2136)), "");
    EXPECT_THAT(error_of(tar_member("L", "a", 'L') + tar_end()), HasSubstr("ends inside"));
}

TEST(TarFormat, DamagedHeadersAreCorrupt) {
    EXPECT_THAT(error_of(std::string(512, 'z')), HasSubstr("not a tar header"));
    EXPECT_THAT(error_of(tar_header("x", (1U << 20U) + 1, 'x')), HasSubstr("over 1 MiB"));
    for (const std::string& body :
         {std::string{"5 path"},
          std::string{"99 path=a\n"},
          std::string{"path=a\n"},
          std::string{"9 path=ab"},
          std::string{"2 \n"} + "x",
          pax_record("size", "12x"),
          pax_record("size", "99999999999999999999"),
          pax_record("size", "")}) {
        EXPECT_THAT(error_of(tar_member("x", body, 'x') + tar_member("a", "1")), HasSubstr("pax"))
            << body;
    }
    const std::string zero = tar_member("x", pax_record("path", std::string{"a\0b", 3}), 'x');
    EXPECT_THAT(error_of(zero + tar_member("a", "1")), HasSubstr("zero byte"));
    for (const char* key : {"path", "size"}) {
        EXPECT_THAT(error_of(tar_member("g", pax_record(key, "1"), 'g')), HasSubstr("all members"));
    }
}

// However a file is damaged, its members lie inside the file and follow one another.
TEST(TarFormat, DamagedFilesGiveErrorsOrMembersInside) {
    Prng random{test::seed()};
    const std::string good =
        tar_member("L", std::string(200, 'n'), 'L') + tar_member("a", std::string(600, 'a')) +
        tar_member("x", pax_record("size", "3"), 'x') + tar_member("b", "123") + tar_end();
    for (int round = 0; round < 20'000; ++round) {
        std::string bad = good;
        for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
            bad[random() % bad.size()] = static_cast<char>(random());
        }
        const std::size_t at = random() % 9 * 512;
        if (at + 512 <= bad.size() && random() % 2 == 0) {
            bad.replace(at, 512, tar_signed(bad.substr(at, 512)));
        }
        bad.resize(bad.size() - (random() % 4 == 0 ? random() % bad.size() : 0));
        std::uint64_t end = 0;
        for (const TarMember& member : members_of(bad).value_or(std::vector<TarMember>{})) {
            ASSERT_GE(member.begin, end) << "round " << round << ", seed " << test::seed();
            ASSERT_GE(member.data, member.begin + 512);
            end = member.end();
            ASSERT_LE(end, bad.size());
        }
    }
}

}  // namespace
}  // namespace stoker::domain
