#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace stoker::advise {

// One read as stated by a line. The views point into the line or into the splitter's buffer.
struct LineRead {
    double seconds = 0;
    std::string_view key;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> offset{};        // first byte within the object
    std::optional<std::uint64_t> object_bytes{};  // of the object, if only a part was requested
    std::optional<std::uint32_t> epoch{};
    std::string_view reader;  // empty: the trace names no readers
    std::string_view bucket;  // in an access log
};

// Splits a line into fields: at commas if `comma`, otherwise at blanks. `"a b"` and `[a b]` are one
// field each, without their quotes or brackets; brackets are special only in lines without commas.
// Reuse it for many lines; the fields are valid until the next call.
class FieldSplitter {
public:
    const std::vector<std::string_view>& split(std::string_view line, bool comma);

private:
    std::vector<std::string_view> fields_;
};

// Columns of the plain format, by position; the defaults are for traces without a header line.
struct Columns {
    static constexpr std::size_t kAbsent = SIZE_MAX;
    std::size_t time = 0;
    std::size_t key = 1;
    std::size_t bytes = 2;
    std::size_t offset = kAbsent;
    std::size_t epoch = 3;
    std::size_t rank = 4;
};

// Columns by the names of a header. nullopt: the fields are no header. kInvalidArgument: a header
// without time, key and bytes.
Result<std::optional<Columns>> parse_header(const std::vector<std::string_view>& fields);

// One line of the plain format; "-" in an optional field: unknown. kInvalidArgument says which field is wrong.
Result<LineRead> parse_plain(const std::vector<std::string_view>& fields, const Columns& columns);

// Whether the fields are a line of Amazon's S3 server access log.
bool is_access_log(const std::vector<std::string_view>& fields);

// Parses one line of an access log. nullopt: another request than a successful GET of an object.
Result<std::optional<LineRead>> parse_access_log(const std::vector<std::string_view>& fields);

}  // namespace stoker::advise
