#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace web::json {
class value;
}  // namespace web::json

namespace stoker::control {

// One JSON document: immutable, shared, cheap to copy. It exists so that cpprestsdk's header stays
// out of ours; a .cc file that needs to look inside includes <cpprest/json.h> and takes value().
// Thread-safe, as nothing changes.
class Json {
public:
    // null
    Json();

    explicit Json(web::json::value value);

    // Parses one document. Nesting over 128 levels is refused. Errors: kInvalidArgument with the
    // parser's words.
    static Result<Json> parse(std::string_view text);

    [[nodiscard]] const web::json::value& value() const { return *value_; }

    // Compact, raw UTF-8, object keys in a fixed order: equal documents give equal text.
    [[nodiscard]] std::string text() const;

    bool operator==(const Json& other) const;

private:
    std::shared_ptr<const web::json::value> value_;
};

// Read-only look-ups along a path of object keys. Nothing throws: a missing step or another type is
// "not there".
using JsonPath = std::initializer_list<std::string_view>;
const web::json::value* find_at(const web::json::value& root, JsonPath path);
std::string string_at(const web::json::value& root, JsonPath path);  // "" when not there
std::optional<std::int64_t> integer_at(const web::json::value& root, JsonPath path);

}  // namespace stoker::control
