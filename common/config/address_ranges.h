#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace stoker::config {

// Ranges of IP addresses in CIDR form. A value.
class AddressRanges {
public:
    // "10.0.0.0/8", "fd00::/8"; an address without a length is a range of one. kInvalidArgument:
    // the text that is none of these, quoted.
    static Result<AddressRanges> parse(const std::vector<std::string>& texts);

    // The address of a peer as http::ServerRequest::peer has it: "10.1.2.3:4711", "[fd00::1]:4711".
    // False for what is no address.
    [[nodiscard]] bool contains_peer(std::string_view peer) const;

    bool operator==(const AddressRanges&) const = default;

private:
    struct Range {
        std::array<std::uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d
        unsigned bits = 0;                       // that count, from the first

        bool operator==(const Range&) const = default;
    };

    static Result<Range> parse_range(const std::string& text);

    std::vector<Range> ranges_;
};

// 127.0.0.0/8 or ::1, in the form of http::ServerRequest::peer: whoever is in the same pod, or came
// there by `kubectl port-forward`.
bool is_loopback_peer(std::string_view peer);

}  // namespace stoker::config
