#include "common/config/address_ranges.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "common/config/host_port.h"

namespace stoker::config {

namespace {

using Address = std::array<std::uint8_t, 16>;

constexpr unsigned kBits = 128;
constexpr unsigned kMappedBits = 96;  // prefix ::ffff:0:0/96 of a mapped IPv4 address

struct Parsed {
    Address bytes{};
    bool is_v4 = false;
};

std::optional<Parsed> parse_address(const std::string& text) {
    Parsed out;
    if (::inet_pton(AF_INET6, text.c_str(), out.bytes.data()) == 1) {
        return out;
    }
    out.bytes = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    out.is_v4 = true;
    if (::inet_pton(AF_INET, text.c_str(), out.bytes.data() + kMappedBits / 8) == 1) {
        return out;
    }
    return std::nullopt;
}

bool equal_in(const Address& left, const Address& right, unsigned bits) {
    for (unsigned i = 0; i < left.size() && bits > 0; ++i) {
        const unsigned counted = std::min(bits, 8U);
        const unsigned mask = 0xffU << (8 - counted) & 0xffU;
        if (((left[i] ^ right[i]) & mask) != 0) {
            return false;
        }
        bits -= counted;
    }
    return true;
}

}  // namespace

Result<AddressRanges::Range> AddressRanges::parse_range(const std::string& text) {
    const auto refuse = [&] {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("\"{}\" is not a range of addresses, such as 10.0.0.0/8", text));
    };
    const std::size_t slash = text.find('/');
    const auto address = parse_address(text.substr(0, slash));
    if (!address) {
        return refuse();
    }
    const unsigned before = address->is_v4 ? kMappedBits : 0;
    if (slash == std::string::npos) {
        return Range{address->bytes, kBits};
    }
    unsigned bits = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (error != std::errc{} || rest != end || bits > kBits - before) {
        return refuse();
    }
    return Range{address->bytes, before + bits};
}

Result<AddressRanges> AddressRanges::parse(const std::vector<std::string>& texts) {
    AddressRanges out;
    for (const std::string& text : texts) {
        STOKER_TRY(const Range range, parse_range(text));
        out.ranges_.push_back(range);
    }
    return out;
}

bool AddressRanges::contains_peer(std::string_view peer) const {
    const auto place = parse_host_port(peer);
    const auto address = place ? parse_address(place->host) : std::nullopt;
    return address && std::ranges::any_of(ranges_, [&](const Range& range) {
               return equal_in(range.address, address->bytes, range.bits);
           });
}

bool is_loopback_peer(std::string_view peer) {
    static const auto loopback = AddressRanges::parse({"127.0.0.0/8", "::1"});
    return loopback->contains_peer(peer);
}

}  // namespace stoker::config
