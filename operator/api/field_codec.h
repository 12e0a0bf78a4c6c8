#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/base/bytes.h"
#include "operator/api/condition.h"
#include "operator/api/document.h"
#include "operator/api/field_table.h"
#include "operator/api/json.h"
#include "operator/api/json_reader.h"
#include "operator/api/meta.h"
#include "operator/api/time_format.h"

// Reads and writes structs by their tables. For .cc files only. Absent fields keep the struct's
// default; empty members are not written.
namespace stoker::control {

// Reads fields that a table cannot describe: `void (*)(const JsonReader&, T&)`, called after the
// table.
template <class T>
inline constexpr std::nullptr_t kAlsoRead = nullptr;

template <class T>
concept Document = HasFields<T> || !std::same_as<decltype(kAlsoRead<T>), const std::nullptr_t>;

// JSON readers cannot hold integers over 2^63, so these are written as texts, like numbers that
// JSON lacks (inf, nan).
template <class N>
std::optional<N> read_number(const Json& json) {
    std::string text = json.text();
    if (text.size() > 1 && text.front() == '"') {
        text = text.substr(1, text.size() - 2);
    }
    N number{};
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc{} && read.ptr == end ? std::optional(number) : std::nullopt;
}

class FieldReader {
public:
    // Reads one member by its C++ type.
    template <class T>
    static void read(const JsonReader& json, const std::string& name, T& value) {
        if constexpr (Document<T>) {
            read_into(json.object(name), value);
        } else if (std::optional<T> found = find<T>(json, name)) {
            value = *std::move(found);
        }
    }

    template <Document T>
    static void read_into(const JsonReader& json, T& item) {
        for_each_field(item, [&](const auto& field, auto& value) {
            read_at(json, field.name, field.as, value);
        });
        if constexpr (!std::same_as<decltype(kAlsoRead<T>), const std::nullptr_t>) {
            kAlsoRead<T>(json, item);
        }
    }

    template <class T>
    static void read(const JsonReader& json, const std::string& name, std::optional<T>& value) {
        if constexpr (!Document<T>) {
            value = find<T>(json, name);
        } else if (const JsonReader object = json.object(name); object.present()) {
            read_into(object, value.emplace());
        }
    }

    template <class T>
    static void read(const JsonReader& json, const std::string& name, std::vector<T>& items) {
        if constexpr (Document<T>) {
            json.each(name, [&](const JsonReader& item) { read_into(item, items.emplace_back()); });
            if constexpr (std::same_as<T, Condition>) {
                std::ranges::sort(items, {}, &Condition::type);
            }
        } else if constexpr (std::same_as<T, std::string>) {
            items = json.texts(name);
        } else if constexpr (std::same_as<T, Json>) {
            items = json.raw_items(name);
        } else {
            for (const Json& item : json.items(name)) {
                read_number_into(json, name, item, items.emplace_back());
            }
        }
    }

    static void read(const JsonReader& json, const std::string& name, TextMap& texts) {
        texts = json.text_map(name);
    }

    static void read(
        const JsonReader& json, const std::string& name, std::map<std::string, Bytes>& amounts) {
        for (const auto& [key, text] : json.quantity_map(name)) {
            read_number_into(json, name, Json(text), amounts[key]);
        }
    }

    static void read(const JsonReader& json, const std::string& name, Json& value) {
        value = json.raw(name);
    }

private:
    template <class As, class T>
    static void read_at(const JsonReader& json, std::string_view path, const As& as, T& value) {
        const std::size_t dot = path.find('.');
        const std::string name{path.substr(0, dot)};
        if (dot != std::string_view::npos) {
            read_at(json.object(name), path.substr(dot + 1), as, value);
        } else if constexpr (std::same_as<As, AsItsType>) {
            read(json, name, value);
        } else {
            as.read(json, name, value);
        }
    }

    template <class T>
    static std::optional<T> find(const JsonReader& json, const std::string& name) {
        if constexpr (std::same_as<T, std::string>) {
            return json.maybe_text(name);
        } else if constexpr (std::same_as<T, bool>) {
            return json.maybe_flag(name);
        } else if constexpr (std::same_as<T, std::int64_t>) {
            return json.maybe_integer(name);
        } else if constexpr (std::same_as<T, WallTime>) {
            return json.maybe_time(name);
        } else if constexpr (std::is_enum_v<T>) {
            return find_choice<T>(json, name);
        } else {
            const Json found = json.raw(name);
            T number{};
            const bool read = !found.empty() && read_number_into(json, name, found, number);
            return read ? std::optional(number) : std::nullopt;
        }
    }

    template <class E>
    static std::optional<E> find_choice(const JsonReader& json, const std::string& name) {
        const std::optional<std::string> text = json.maybe_text(name);
        for (std::size_t i = 0; text && i < kTexts<E>.size(); ++i) {
            if (kTexts<E>[i] == *text) {
                return static_cast<E>(i);
            }
        }
        if (text) {
            json.complain(name, fmt::format("'{}' is not an allowed value", *text));
        }
        return std::nullopt;
    }

    template <class N>
    static bool read_number_into(
        const JsonReader& json, const std::string& name, const Json& found, N& number) {
        const std::optional<N> read = read_number<N>(found);
        if (!read) {
            json.complain(
                name, fmt::format("{} does not fit into the field's number type", found.text()));
        }
        number = read.value_or(number);
        return read.has_value();
    }

    static bool read_number_into(
        const JsonReader& json, const std::string& name, const Json& found, Bytes& bytes) {
        std::uint64_t count = bytes.count();
        const bool read = read_number_into(json, name, found, count);
        bytes = Bytes{count};
        return read;
    }
};

// Codec of a text that is written even if it is empty.
struct Always {
    void read(const JsonReader& json, const std::string& name, std::string& value) const {
        FieldReader::read(json, name, value);
    }

    [[nodiscard]] Json write(const std::string& value) const { return value; }
};

class FieldWriter {
public:
    template <HasFields T>
    static Json write_fields(const T& item) {
        std::vector<JsonMember> members;
        for_each_field(item, [&](const auto& field, const auto& value) {
            const std::string_view path = field.name;
            const std::size_t dot = path.find('.');
            Json written = write_as(field.as, value);
            if (dot == std::string_view::npos) {
                using As = std::decay_t<decltype(field.as)>;
                constexpr bool kAsIs = std::same_as<decltype(value), const Json&>;
                members.push_back(
                    {std::string{path},
                     std::move(written),
                     std::same_as<As, Always> ? Presence::kAlways
                     : kAsIs                  ? Presence::kUnlessNull
                                              : Presence::kUnlessEmpty});
            } else {
                add_below(path.substr(0, dot), path.substr(dot + 1), written, members);
            }
        });
        return json_object(members);
    }

private:
    // Merges "a.b" with other members of "a".
    static void add_below(
        std::string_view parent,
        std::string_view name,
        const Json& value,
        std::vector<JsonMember>& members) {
        const Json object = json_object({{std::string{name}, value}});
        if (!members.empty() && members.back().name == parent) {
            members.back().value = merged(members.back().value, object);
        } else {
            members.push_back({std::string{parent}, object});
        }
    }

    template <class As, class T>
    static Json write_as(const As& as, const T& value) {
        if constexpr (std::same_as<As, AsItsType>) {
            return write(value);
        } else {
            return as.write(value);
        }
    }

    template <class T>
    static Json write(const T& value) {
        if constexpr (HasFields<T>) {
            return write_fields(value);
        } else if constexpr (std::is_enum_v<T>) {
            return kTexts<T>.at(static_cast<std::size_t>(value));
        } else {
            return value;
        }
    }

    static Json write(Bytes bytes) {
        constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
        return bytes.count() <= kMax ? Json(bytes.count()) : Json(std::to_string(bytes.count()));
    }

    static Json write(WallTime time) { return format_time(time); }

    template <class T>
    static Json write(const std::optional<T>& value) {
        return value ? write(*value) : Json();
    }

    template <class T>
    static Json write(const std::vector<T>& items) {
        return json_list(items, [](const T& item) { return write(item); });
    }

    static Json write(const std::map<std::string, Bytes>& amounts) {
        std::vector<JsonMember> members;
        for (const auto& [name, bytes] : amounts) {
            members.push_back({name, write(bytes)});
        }
        return json_object(members);
    }
};

// Codec of a member that only the server sets.
struct ReadOnly {
    template <class T>
    void read(const JsonReader& json, const std::string& name, T& value) const {
        FieldReader::read(json, name, value);
    }

    template <class T>
    [[nodiscard]] Json write(const T& /*value*/) const {
        return {};
    }
};

// Codec of a member that we set and never read.
struct WriteOnly {
    void read(const JsonReader& /*json*/, const std::string& /*name*/, bool& /*value*/) const {}

    [[nodiscard]] Json write(bool value) const { return value; }
};

// Codec of a flag whose absence means false, whatever the struct's default.
struct FalseIfAbsent {
    void read(const JsonReader& json, const std::string& name, bool& value) const {
        value = json.flag(name);
    }

    [[nodiscard]] Json write(bool value) const { return value; }
};

// Any other text than True and False is Unknown.
struct ConditionAnswer {
    void read(const JsonReader& json, const std::string& name, ConditionStatus& value) const {
        const std::string text = json.text(name);
        value = text == "True"    ? ConditionStatus::kTrue
                : text == "False" ? ConditionStatus::kFalse
                                  : ConditionStatus::kUnknown;
    }

    [[nodiscard]] Json write(ConditionStatus value) const { return to_string(value); }
};

template <>
inline constexpr auto kFields<OwnerReference> = table(
    field("apiVersion", &OwnerReference::api_version),
    field("kind", &OwnerReference::kind),
    field("name", &OwnerReference::name),
    field("uid", &OwnerReference::uid),
    field("controller", &OwnerReference::controller, FalseIfAbsent{}),
    field("blockOwnerDeletion", &OwnerReference::blocks_deletion, WriteOnly{}));
template <>
inline constexpr auto kFields<ObjectMeta> = table(
    field("namespace", &ObjectMeta::ns),
    field("name", &ObjectMeta::name),
    field("uid", &ObjectMeta::uid, ReadOnly{}),
    field("resourceVersion", &ObjectMeta::resource_version, ReadOnly{}),
    field("generation", &ObjectMeta::generation, ReadOnly{}),
    field("creationTimestamp", &ObjectMeta::created_at, ReadOnly{}),
    field("deletionTimestamp", &ObjectMeta::deleting_since, ReadOnly{}),
    field("labels", &ObjectMeta::labels),
    field("annotations", &ObjectMeta::annotations),
    field("ownerReferences", &ObjectMeta::owners));
template <>
inline constexpr auto kFields<Condition> = table(
    field("type", &Condition::type),
    field("status", &Condition::status, ConditionAnswer{}),
    field("observedGeneration", &Condition::observed_generation),
    field("lastTransitionTime", &Condition::last_transition),
    field("reason", &Condition::reason),
    // The API requires a message, even an empty one.
    field("message", &Condition::message, Always{}));

// A flag that is omitted when false.
inline Json if_true(bool flag) {
    return flag ? Json(true) : Json();
}

// {"apiVersion", "kind", "metadata": {name, namespace, uid}, "status": status}: the body of an
// apply to /status. With the uid it cannot recreate a deleted object; with a `resource_version` it
// fails if the object has changed since.
inline Json status_body(
    std::string_view kind,
    const ObjectMeta& meta,
    const Json& status,
    std::string_view api_version,
    const std::string& resource_version = {}) {
    return json_object(
        {{"apiVersion", api_version},
         {"kind", kind},
         {"metadata",
          json_object(
              {{"name", meta.name},
               {"namespace", meta.ns},
               {"uid", meta.uid},
               {"resourceVersion", resource_version}})},
         {"status", status, Presence::kAlways}});
}

// status_body() for our own kinds, conditional on the object's version: a status computed from an
// older version, such as a new leader's first list, must not replace a newer one.
inline Json own_status_body(std::string_view kind, const ObjectMeta& meta, const Json& status) {
    return status_body(kind, meta, status, "stoker.dev/v1alpha1", meta.resource_version);
}

template <class T>
Result<T> read_document(const Json& json) {
    T result{};
    STOKER_TRY_VOID(
        read_json(json, [&](const JsonReader& root) { FieldReader::read_into(root, result); }));
    return result;
}

template <class T>
std::set<std::string> known_fields() {
    ReadLog log;
    log.recording = true;
    T result{};
    FieldReader::read_into(JsonReader{nullptr, "", log}, result);
    return log.fields;
}

// A text or a whole number, stored as text.
struct IntOrText {
    void read(const JsonReader& json, const std::string& name, std::string& value) const {
        value = json.int_or_text(name, std::move(value));
    }
};

// Bytes as a Kubernetes quantity: "1.5Gi".
struct Quantity {
    void read(const JsonReader& json, const std::string& name, Bytes& value) const {
        value = json.maybe_bytes(name).value_or(value);
    }

    void read(const JsonReader& json, const std::string& name, std::optional<Bytes>& value) const {
        value = json.maybe_bytes(name);
    }
};

struct Quantities {
    void read(const JsonReader& json, const std::string& name, TextMap& value) const {
        value = json.quantity_map(name);
    }

    [[nodiscard]] Json write(const TextMap& value) const { return value; }
};

// One text inside an object, such as poolRef.name. Set if the object is present.
struct TextOf {
    const char* inner;

    void read(
        const JsonReader& json, const std::string& name, std::optional<std::string>& value) const {
        if (const JsonReader object = json.object(name); object.present()) {
            value = object.text(inner);
        }
    }
};

}  // namespace stoker::control
