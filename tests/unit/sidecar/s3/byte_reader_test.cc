#include "sidecar/s3/byte_reader.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_seed.h"

namespace stoker::s3 {
namespace {

// Returns a text in pieces of at most `piece` bytes.
class TextReader final : public ByteReader {
public:
    TextReader(std::string text, std::size_t piece)
        : text_(std::move(text)),
          piece_(piece) {}

    Result<std::size_t> read_some(std::span<char> out) override {
        const std::size_t count = std::min({out.size(), text_.size() - at_, piece_});
        std::copy_n(text_.data() + at_, count, out.data());
        at_ += count;
        return count;
    }

    [[nodiscard]] std::string rest() const { return text_.substr(at_); }

private:
    std::string text_;
    std::size_t piece_;
    std::size_t at_ = 0;
};

Result<std::string> read_all(ByteReader& reader, std::size_t piece) {
    std::string all;
    std::string part(piece, '\0');
    while (true) {
        STOKER_TRY(const std::size_t count, reader.read_some(part));
        if (count == 0) {
            return all;
        }
        all.append(part, 0, count);
    }
}

TEST(ByteReader, LengthEndsTheBody) {
    TextReader text{"bodyGET /", 3};
    LengthReader body{text, 4};
    EXPECT_EQ(read_all(body, 100), "body");
    EXPECT_EQ(text.rest(), "GET /");
}

TEST(ByteReader, ChunksOfRandomSizesGiveTheirPayload) {
    std::mt19937_64 random{test::seed()};
    for (int round = 0; round < 500; ++round) {
        std::string payload;
        std::string encoded;
        for (auto left = random() % 6; left > 0; --left) {
            const std::string part(1 + random() % 70, static_cast<char>('a' + random() % 26));
            payload += part;
            encoded += fmt::format("{:x};chunk-signature=0123\r\n{}\r\n", part.size(), part);
        }
        encoded += "0;chunk-signature=4567\r\n";
        encoded += random() % 2 == 0 ? "" : "x-amz-checksum-crc32:AAAA\r\n";
        TextReader text{encoded + "\r\nnext", 1 + random() % 20};
        ChunkReader chunks{text};
        ASSERT_EQ(read_all(chunks, 1 + random() % 50), payload) << encoded;
        ASSERT_EQ(text.rest(), "next");
    }
}

TEST(ByteReader, AwsChunksInsideHttpChunks) {
    TextReader text{"9\r\n3;c=1\r\nab\r\n8\r\nc\r\n0\r\n\r\n\r\n0\r\n\r\nnext", 5};
    ChunkReader framed{text};
    ByteReader& body = framed;
    ChunkReader decoded{body};
    EXPECT_EQ(read_all(decoded, 10), "abc");
    EXPECT_EQ(read_all(framed, 10), "");
    EXPECT_EQ(text.rest(), "next");
}

TEST(ByteReader, RefusesBrokenChunks) {
    const std::string long_line(2000, '0');
    for (const std::string& broken :
         {std::string{""},
          std::string{"x\r\n"},
          std::string{"-1\r\n"},
          std::string{" 1\r\na\r\n"},
          std::string{"1\r\nab\r\n0\r\n\r\n"},
          std::string{"2\r\na"},
          std::string{"11111111111111111\r\n"},
          std::string{"0\r\n"},
          long_line + "1\r\na\r\n"}) {
        TextReader text{broken, 100};
        ChunkReader chunks{text};
        const auto read = read_all(chunks, 10);
        ASSERT_FALSE(read) << broken;
        EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument) << broken;
    }
}

}  // namespace
}  // namespace stoker::s3
