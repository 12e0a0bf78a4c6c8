#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"

// One TCP connection to loopback that sends exactly the test's bytes, for servers that must survive
// bad clients.
namespace stoker::test {

class HttpRawClient {
public:
    // Connects at once; connected() returns whether that worked.
    explicit HttpRawClient(std::uint16_t port);

    [[nodiscard]] bool connected() const { return fd_.valid(); }

    // False: the server closed the connection.
    bool send(std::string_view bytes);

    // Returns everything that arrives until the server closes the connection, or until `limit`.
    std::string read_until_closed(Duration limit);

    // Reads until `text` appears. False: connection closed, or `limit` passed.
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
