#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

// Makes tar files for tests.
namespace stoker::test {

// Fills with zeros up to a multiple of 512.
inline std::string tar_padded(std::string text) {
    text.resize((text.size() + 511) / 512 * 512);
    return text;
}

// Writes the checksum into a header.
inline std::string tar_signed(std::string header) {
    header.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char byte : header) {
        sum += static_cast<unsigned char>(byte);
    }
    char field[8] = {};
    std::snprintf(field, sizeof field, "%06o", sum);
    header.replace(148, 8, field, 8);
    return header;
}

// A ustar header of 512 bytes. `name` has at most 100 bytes.
inline std::string tar_header(const std::string& name, std::uint64_t size, char type = '0') {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    char field[12] = {};
    std::snprintf(field, sizeof field, "%011llo", static_cast<unsigned long long>(size));
    header.replace(124, sizeof field, field, sizeof field);
    header[156] = type;
    header.replace(
        257,
        8,
        std::string{
            "ustar\0"
            "00",
            8});
    return tar_signed(std::move(header));
}

// A member with its padding.
inline std::string tar_member(const std::string& name, const std::string& data, char type = '0') {
    return tar_header(name, data.size(), type) + tar_padded(data);
}

// A pax record: "LENGTH KEY=VALUE\n".
inline std::string pax_record(const std::string& key, const std::string& value) {
    const std::string rest = " " + key + "=" + value + "\n";
    std::size_t length = rest.size();
    while (std::to_string(length).size() + rest.size() != length) {
        length = std::to_string(length).size() + rest.size();
    }
    return std::to_string(length) + rest;
}

inline std::string tar_end() {
    return std::string(1024, '\0');
}

}  // namespace stoker::test
