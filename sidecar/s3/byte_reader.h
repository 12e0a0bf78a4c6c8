#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

// Readers of a request's body; one reader may wrap another. Each is used by one thread.
namespace stoker::s3 {

class ByteReader {
public:
    ByteReader() = default;
    ByteReader(const ByteReader&) = delete;
    ByteReader& operator=(const ByteReader&) = delete;
    virtual ~ByteReader() = default;

    // Reads some bytes; waits for at least one; 0: the end. kDeadlineExceeded: the client sends
    // nothing. kUnavailable: the client has hung up. kInvalidArgument: the framing is wrong.
    virtual Result<std::size_t> read_some(std::span<char> out) = 0;

    // Reads a line, without its "\r\n". kInvalidArgument: longer than `bytes_max`, or no line end.
    Result<std::string> read_line(std::size_t bytes_max);
};

// Reads the bytes that were received with the head, then from a socket that does not block.
class SocketReader final : public ByteReader {
public:
    SocketReader(int socket, std::string buffered, Duration patience);

    Result<std::size_t> read_some(std::span<char> out) override;

    // Bytes read from the socket beyond this body: they begin the next request.
    [[nodiscard]] std::string take_rest();

private:
    Status fill();

    int socket_;
    std::string buffer_;
    std::size_t taken_ = 0;
    Duration patience_;  // longest wait for a byte
};

// Reads only the first `length` bytes of another reader.
class LengthReader final : public ByteReader {
public:
    LengthReader(ByteReader& from, std::uint64_t length);

    Result<std::size_t> read_some(std::span<char> out) override;

private:
    ByteReader& from_;
    std::uint64_t left_;
};

// Reads the payload of chunks, "HEX[;extension]\r\n bytes \r\n", which end with a chunk of length 0
// and trailing lines: HTTP's chunked transfer coding, and aws-chunked inside a body. Drops
// extensions (the chunks' signatures) and trailers.
class ChunkReader final : public ByteReader {
public:
    explicit ChunkReader(ByteReader& from);

    Result<std::size_t> read_some(std::span<char> out) override;

private:
    Status begin_chunk();
    Status end_chunk();

    ByteReader& from_;
    std::uint64_t left_ = 0;
    bool is_over_ = false;
};

// Writes all bytes to a socket that does not block. kDeadlineExceeded: the client accepts nothing
// for `patience`. kUnavailable: the client has hung up.
Status write_all(int socket, std::string_view bytes, Duration patience);

}  // namespace stoker::s3
