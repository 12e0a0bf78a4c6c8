#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/condition.h"
#include "operator/api/meta.h"

namespace web::json {
class value;
}

// Builds JSON objects for the API server. What is empty is left out, because a server-side apply
// gives up a field that it does not mention. Not thread-safe.
namespace stoker::control {

class JsonWriter {
public:
    JsonWriter();
    ~JsonWriter();
    JsonWriter(JsonWriter&& other) noexcept;
    JsonWriter& operator=(JsonWriter&& other) noexcept;

    JsonWriter& text(const std::string& name, const std::string& value);  // left out when empty
    JsonWriter& number(const std::string& name, std::int64_t value);      // always there
    // The shortest text that reads back as the same number; finite ones only.
    JsonWriter& decimal(const std::string& name, double value);
    JsonWriter& flag(const std::string& name, bool value);  // always there
    JsonWriter& time(const std::string& name, const std::optional<WallTime>& value);
    JsonWriter& texts(const std::string& name, const std::vector<std::string>& values);
    JsonWriter& text_map(const std::string& name, const TextMap& values);
    JsonWriter& raw(const std::string& name, const RawJson& value);
    JsonWriter& object(const std::string& name, const JsonWriter& value);  // left out when empty
    JsonWriter& required_object(
        const std::string& name, const JsonWriter& value);                // always there: emptyDir
    JsonWriter& append(const std::string& name, const JsonWriter& item);  // to a list, made at need
    JsonWriter& append_raw(const std::string& name, const RawJson& item);
    JsonWriter& append_number(const std::string& name, std::int64_t item);
    JsonWriter& append_text(const std::string& name, const std::string& item);

    // `write` makes a JsonWriter of an item. Left out when there are none.
    template <class T, class Write>
    JsonWriter& list(const std::string& name, const std::vector<T>& items, Write write) {
        for (const T& item : items) {
            append(name, write(item));
        }
        return *this;
    }

    // Merges a RawJson object into this one: its fields win over what is here, lists excepted, to
    // which it adds.
    JsonWriter& overlay(const RawJson& object);

    [[nodiscard]] bool empty() const;
    [[nodiscard]] std::string serialize() const;

private:
    void append_value(const std::string& name, web::json::value&& item);

    std::unique_ptr<web::json::value> value_;
};

JsonWriter write_condition(const Condition& condition);

// Metadata of an object that we make: name, namespace, labels, annotations and owners.
JsonWriter write_meta(const ObjectMeta& meta);

// {"apiVersion", "kind", "metadata": {name, namespace, uid}, "status": status}: the body of an
// apply to /status. With the uid it cannot bring a deleted object back; with a `resource_version`
// it is refused where somebody else has written since.
std::string status_body(
    std::string_view kind,
    const ObjectMeta& meta,
    const JsonWriter& status,
    std::string_view api_version = "stoker.dev/v1alpha1",
    const std::string& resource_version = {});

}  // namespace stoker::control
