#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace stoker::config {

// Ranges of IP addresses, parsed from CIDR form. A value.
class AddressRanges {
public:
    // Parses "10.0.0.0/8" or "fd00::/8"; an address without a prefix length is a range of one.
    // kInvalidArgument quotes the invalid text.
    static Result<AddressRanges> parse(const std::vector<std::string>& texts);

    // `peer` is an address in the form of http::ServerRequest::peer: "10.1.2.3:4711",
    // "[fd00::1]:4711". False for text that is not an address.
    [[nodiscard]] bool contains_peer(std::string_view peer) const;

    bool operator==(const AddressRanges&) const = default;

private:
    struct Range {
        std::array<std::uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d
        unsigned bits = 0;                       // prefix length

        bool operator==(const Range&) const = default;
    };

    static Result<Range> parse_range(const std::string& text);

    std::vector<Range> ranges_;
};

// True for 127.0.0.0/8 or ::1, in the form of http::ServerRequest::peer: a caller in the same pod
// or behind `kubectl port-forward`.
bool is_loopback_peer(std::string_view peer);

}  // namespace stoker::config
