#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/unique_fd.h"

namespace stoker::bench {

// A blocking connection to a Unix socket with a read buffer. One thread. Ends the program with a
// message if the server is not there or closes the connection.
class UnixStream {
public:
    explicit UnixStream(const std::string& path);

    void send(std::string_view text);

    // The next line without its "\r\n"; valid until the next call.
    std::string_view read_line();

    // The next `count` bytes; valid until the next call.
    std::span<const std::byte> read(std::size_t count);

private:
    // Receives until at least `count` unread bytes are in the buffer.
    void fill(std::size_t count);

    std::string path_;
    UniqueFd socket_;
    std::vector<char> buffer_;
    std::size_t begin_ = 0;  // of the unread bytes
    std::size_t end_ = 0;
};

}  // namespace stoker::bench
