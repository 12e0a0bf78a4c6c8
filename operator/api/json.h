#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "operator/api/meta.h"

namespace web::json {
class value;
}  // namespace web::json

namespace stoker::control {

// One JSON value: immutable, shared, cheap to copy. This class keeps cpprestsdk's header out of our
// headers; a .cc file that needs the members includes <cpprest/json.h> and calls value(). Texts,
// numbers, flags, lists, maps of texts and json_object() convert to it; an empty optional is null.
// Thread-safe: immutable.
class Json {
public:
    // null
    Json();

    explicit Json(web::json::value value);

    Json(std::string_view text);

    Json(const std::string& text)
        : Json(std::string_view{text}) {}

    Json(const char* text)
        : Json(std::string_view{text}) {}

    template <std::same_as<bool> B>
    Json(B flag)
        : Json(of_flag(flag)) {}

    template <std::integral N>

    requires(!std::same_as<N, bool>) Json(N number)
        : Json(of_integer(static_cast<std::int64_t>(number))) {}

    // The shortest text that reads back as the same number; numbers that JSON cannot write become
    // texts: "inf", "nan".
    Json(double number);
    Json(float number);
    Json(const TextMap& texts);
    Json(const std::vector<Json>& items);
    template <class T>

    requires(!std::same_as<T, Json>) Json(const std::vector<T>& items)
        : Json(std::vector<Json>(items.begin(), items.end())) {}

    template <class T>
    Json(const std::optional<T>& value)
        : Json(value ? Json(*value) : Json()) {}

    // Parses one document. Nesting over 128 levels is refused. kInvalidArgument: the parser's
    // message.
    static Result<Json> parse(std::string_view text);

    [[nodiscard]] const web::json::value& value() const { return *value_; }

    // Compact, raw UTF-8, object keys in a fixed order: equal documents give equal text.
    [[nodiscard]] std::string text() const;

    // Null, or a text, list or object with nothing in it.
    [[nodiscard]] bool empty() const;

    bool operator==(const Json& other) const;

private:
    static Json of_flag(bool flag);
    static Json of_integer(std::int64_t number);

    std::shared_ptr<const web::json::value> value_;
};

// One member of an object. Empty members are left out, because a server-side apply gives up
// unmentioned fields. kUnlessNull is for values that are passed through, kAlways for an emptyDir or
// a null that removes a field.
enum class Presence : std::uint8_t { kUnlessEmpty, kUnlessNull, kAlways };

struct JsonMember {
    std::string name;
    Json value;
    Presence presence = Presence::kUnlessEmpty;
};

Json json_object(const std::vector<JsonMember>& members);

// The list of the results of `write` for each item.
template <class T, class Write>
Json json_list(const std::vector<T>& items, Write write) {
    std::vector<Json> list;
    for (const T& item : items) {
        list.push_back(write(item));
    }
    return list;
}

// Merges two values: `over`'s fields win, objects are merged, lists are joined. Null counts as
// absent.
Json merged(const Json& under, const Json& over);

// Read-only look-ups along a path of object keys. They never throw: a missing step or another type
// counts as absent.
using JsonPath = std::initializer_list<std::string_view>;
const web::json::value* find_at(const web::json::value& root, JsonPath path);
std::string string_at(const web::json::value& root, JsonPath path);  // "" when not there
std::optional<std::int64_t> integer_at(const web::json::value& root, JsonPath path);

}  // namespace stoker::control
