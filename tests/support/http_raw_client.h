#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"

// One TCP connection to loopback that says exactly what a test tells it to: for servers that must
// survive bad clients.
namespace stoker::test {

class HttpRawClient {
public:
    // Connects at once; connected() tells whether that worked.
    explicit HttpRawClient(std::uint16_t port);

    [[nodiscard]] bool connected() const { return fd_.valid(); }

    // False: the server has closed the connection.
    bool send(std::string_view bytes);

    // Everything until the server closes the connection, or what there was after `limit`.
    std::string read_until_closed(Duration limit);

    // Reads until `text` has been seen. False: closed, or `limit` over.
    bool read_until(std::string_view text, Duration limit);

    // True once the server has closed the connection, false after `limit`.
    bool wait_until_closed(Duration limit);

private:
    enum class Read { kData, kClosed, kTimeout };
    Read read_some(std::string& into, Duration limit);

    UniqueFd fd_;
    std::string received_;
};

}  // namespace stoker::test
